// Each generated client makes an invoice and reads it back; the compiler says whether it may.
import createClient from "openapi-fetch";
import * as heyApi from "./client";
import { client } from "./client/client.gen";
import * as oazapfts from "./oazapfts";
import type { paths } from "./types";

declare const process: { argv: string[] }; // of Node.js
const [, , service, key] = process.argv;
const headers = { Authorization: `Bearer ${key}` };
const body = { amount_usd: 25, description: "Two mugs" };

async function byOpenapiFetch(): Promise<unknown[]> {
  const api = createClient<paths>({ baseUrl: service, headers });
  const made = await api.POST("/api/v1/invoices", { body, params: { header: { "Idempotency-Key": "of fetch" } } });
  const id = made.data?.id ?? "";
  const read = await api.GET("/api/v1/invoices/{id}", { params: { path: { id } } });
  return [made.response.status, read.data?.id === id, read.data?.status, read.data?.description];
}

async function byHeyApi(): Promise<unknown[]> {
  client.setConfig({ baseUrl: service, auth: key });
  const made = await heyApi.createInvoice({ body, headers: { "Idempotency-Key": "of Hey API" } });
  const id = made.data?.id ?? "";
  const read = await heyApi.getInvoice({ path: { id } });
  return [made.response?.status, read.data?.id === id, read.data?.status, read.data?.description];
}

async function byOazapfts(): Promise<unknown[]> {
  oazapfts.defaults.baseUrl = service;
  const made = await oazapfts.createInvoice(body, { idempotencyKey: "of oazapfts" }, { headers });
  const id = made.status === 201 ? made.data.id : "";
  const read = await oazapfts.getInvoice(id, { headers });
  return [made.status, ...(read.status === 200 ? [read.data.id === id, read.data.status, read.data.description] : [])];
}

async function main(): Promise<void> {
  for (const buy of [byOpenapiFetch, byHeyApi, byOazapfts]) console.log(...(await buy()));
}

main();
