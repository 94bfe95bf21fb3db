// What btcpay-greenfield-node-client makes of a call: a line of JSON in, a line of JSON out.
'use strict';

const {
  InvoicesService: invoices, PullPaymentsManagementService: pulls, PullPaymentsPublicService: pulled, OpenAPI,
} = require('btcpay-greenfield-node-client');

const [url, key, storeId] = process.argv.slice(2);
Object.assign(OpenAPI, {BASE: url, HEADERS: {Authorization: `token ${key}`}});
const calls = {
  order: (requestBody) => invoices.invoicesCreateInvoice({storeId, requestBody}),
  seen: (invoiceId) => invoices.invoicesGetInvoice({storeId, invoiceId}),
  listed: () => invoices.invoicesGetInvoices({storeId}),
  methods: (invoiceId) => invoices.invoicesGetInvoicePaymentMethods({storeId, invoiceId}),
  refund: (requestBody) => pulls.pullPaymentsCreatePullPayment({storeId, requestBody}),
  refunded: (pullPaymentId) => pulled.pullPaymentsGetPullPayment({pullPaymentId}),
  cancel: (invoiceId) =>
    invoices.invoicesMarkInvoiceStatus({storeId, invoiceId, requestBody: {status: 'Invalid'}}),
};
(async () => {
  for await (const line of require('readline').createInterface({input: process.stdin})) {
    const [name, ...said] = JSON.parse(line);
    console.log(JSON.stringify(await calls[name](...said)));
  }
})();
