// Makes the picture of README.md of examples/kv-demo: npm run build && node scripts/screenshots-kv.js
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { browserPage, finish, runtime, shoot } from './dashboard-pages.js';

const html = join(runtime, 'demo.html');
const demo = fork('examples/kv-demo/main.js', ['12', html]);
const [code] = await once(demo, 'exit');
if (code !== 0) throw new Error(`the demo ended with exit code ${code}`);
const page = await browserPage('light');
await page.goto(pathToFileURL(html).href);
await shoot(page, 'kv-demo');
await finish();
