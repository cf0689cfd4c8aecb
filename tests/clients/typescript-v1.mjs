// One visit by the TypeScript SDK, version 1: node typescript-v1.mjs stdio COMMAND | http URL | sse URL
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { visit } from "./typescript-visit.mjs";

const [kind, target] = process.argv.slice(2);
const transport = {
  stdio: () => new StdioClientTransport({ command: target, args: [], stderr: "ignore" }),
  http: () => new StreamableHTTPClientTransport(new URL(target)),
  sse: () => new SSEClientTransport(new URL(target)),
}[kind]();
const client = new Client({ name: "typescript-1", version: "1" }, { capabilities: { roots: {} } });
await client.connect(transport);
await visit(client, transport.protocolVersion ?? "");
