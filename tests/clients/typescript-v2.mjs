// One visit by the TypeScript SDK, version 2: node typescript-v2.mjs stdio COMMAND | http URL
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { visit } from "./typescript-visit.mjs";

const [kind, target] = process.argv.slice(2);
const transport = {
  stdio: () => new StdioClientTransport({ command: target, args: [], stderr: "ignore" }),
  http: () => new StreamableHTTPClientTransport(new URL(target)),
}[kind]();
const client = new Client({ name: "typescript-2", version: "1" }, { versionNegotiation: { mode: "auto" } });
await client.connect(transport);
await visit(client, client.getNegotiatedProtocolVersion());
