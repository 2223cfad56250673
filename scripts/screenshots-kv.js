// Makes the picture of README.md of `rocev2 kv demo`: npm run build && node scripts/screenshots-kv.js
import { once } from 'node:events';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { browserPage, finish, runtime, shoot, start } from './dashboard-pages.js';

const html = join(runtime, 'demo.html');
const demo = start('kv', 'demo', '-D', '12', '--html', html);
demo.stdout.resume();
const [code] = await once(demo, 'exit');
if (code !== 0) throw new Error(`kv demo ended with exit code ${code}`);
const page = await browserPage('light');
await page.goto(pathToFileURL(html).href);
await shoot(page, 'kv-demo');
await finish();
