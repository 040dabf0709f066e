// Says of the second build that it is CommonJS: for Metro, Jest and others that read no ES modules from packages.

import { writeFileSync } from "node:fs";

writeFileSync("dist/cjs/package.json", '{ "type": "commonjs" }\n');
