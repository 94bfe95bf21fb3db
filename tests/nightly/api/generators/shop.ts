// What a shop writes with the generated types and client: the compiler says whether it may.
import type { components, operations } from "./types";
import {
  createPaymentLink,
  getCheckoutStatus,
  getInvoice,
  listInvoices,
  type InvoiceList,
  type InvoicePaidEvent,
  type NewPaymentLink,
} from "./client";
import { client } from "./client/client.gen";

declare const process: { argv: string[] }; // of Node.js

const open: NewPaymentLink = { title: "Tip jar", min_amount_usd: 1 };
const priced: components["schemas"]["NewPaymentLink"] = { title: "Mug", amount_usd: 25, amount_mode: null };
const empty: components["schemas"]["InvoiceList"] = { object: "list", data: [] };
export type Polled = operations["get-checkout-status"]["responses"][200]["content"]["application/json"];

export async function trip(service: string, key: string): Promise<(string | null | undefined)[]> {
  client.setConfig({ baseUrl: service, auth: key });
  const made = [await createPaymentLink({ body: open }), await createPaymentLink({ body: priced })];
  const list: InvoiceList = (await listInvoices({ query: { limit: 1 } })).data ?? empty;
  const [newest] = list.data;
  const invoice = await getInvoice({ path: { id: newest.id } });
  const polled: Polled | undefined = (await getCheckoutStatus({ path: { id: newest.id } })).data;
  return [...made.map((link) => link.data?.title), invoice.data?.status, polled?.status];
}

export const paid = (event: InvoicePaidEvent): string => event.data.invoice.id;

trip(process.argv[2], process.argv[3]).then((said) => console.log(...said));
