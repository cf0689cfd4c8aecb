// What both versions of the SDK do alike, printed as one JSON line. The SDK checks every result against its schema.
export async function visit(client, version) {
  const { tools } = await client.listTools();
  const found = await client.callTool({ name: "ground_recall", arguments: { query: "ninja" } });
  const wrong = await client.callTool({ name: "ground_recall", arguments: { query: 7 } });
  const brief = await client.readResource({ uri: "memory://brief" });
  const prompt = await client.getPrompt({ name: "startup_brief" });
  const completed = await client.complete({
    ref: { type: "ref/prompt", name: "context_pack" },
    argument: { name: "intent", value: "b" },
  });
  console.log(JSON.stringify({
    server: client.getServerVersion().name,
    version,
    instructions: client.getInstructions(),
    tools: tools.map((tool) => tool.name),
    structured: found.structuredContent.data[0].text,
    text: found.content[0].text,
    wrong: [wrong.isError, wrong.content[0].text],
    brief: brief.contents[0].text,
    prompt: prompt.messages[0].content.text,
    completed: completed.completion.values,
  }));
  await client.close();
}
