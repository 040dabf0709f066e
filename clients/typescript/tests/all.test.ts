// All tests, in one process: they share a service.

import { after } from "node:test";

import { end } from "./world.js";
import "./package.test.js";
import "./api.test.js";
import "./phone.test.js";
import "./binding.test.js";
import "./cookie.test.js";
import "./storage.test.js";
import "./react.test.js";
import "./admin.test.js";
import "./token.test.js";
import "./webhook.test.js";

after(end);
