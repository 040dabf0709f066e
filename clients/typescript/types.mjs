// Prints the types of what the clients use of a running service's description. `npm run types` keeps them.

import openapiTS, { astToString, COMMENT_HEADER } from "openapi-typescript";

const [url = "http://127.0.0.1:8000"] = process.argv.slice(2);
const { openapi, info, paths, webhooks, components } = await (await fetch(`${url}/api/v1/openapi.json`)).json();
const used = Object.entries(paths).filter(([path]) => /^\/api\/v1\/(auth|me|admin)\b/.test(path));
const operations = [...used.map(([, operations]) => operations), ...Object.values(webhooks ?? {})];
for (const operation of operations.flatMap(Object.values)) {
  // Errors have one type, and the rest is for people.
  const answers = Object.entries(operation.responses).filter(([status]) => status < 300);
  operation.responses = Object.fromEntries(answers.map(([status, { content }]) => [status, { content }]));
  operation.summary = operation.description = undefined;
  for (const { content } of [operation.requestBody, ...Object.values(operation.responses)].filter(Boolean)) {
    for (const media of Object.values(content ?? {})) media.example = media.examples = undefined;
  }
}
const { schemas } = components;
const document = { openapi, info, paths: Object.fromEntries(used), webhooks, components: { schemas } };
// Claims are what a backend has made of them.
const nodes = await openapiTS(JSON.stringify(document), { emptyObjectsUnknown: true });
process.stdout.write(COMMENT_HEADER + astToString(nodes));
