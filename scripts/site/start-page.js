// @ts-check
/**
 * Makes the page of packages/page the start page of a site: `node scripts/site/start-page.js site`. The README, which typedoc has made the start page, becomes
 * `readme.html`, to which the start page and the links of all documents lead.
 */

import { readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { buildPage } from '../page.js';

const README = 'readme.html';

const folder = process.argv[2];
if (folder === undefined) throw new Error('usage: node scripts/site/start-page.js FOLDER');

renameSync(path.join(folder, 'index.html'), path.join(folder, README));
for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
  if (!name.endsWith('.html')) continue;
  const file = path.join(folder, name);
  const html = readFileSync(file, 'utf8');
  writeFileSync(file, html.replaceAll(/(href="(?:\.\.\/)*)index\.html(?=["#])/g, `$1${README}`));
}
await buildPage(folder, { documents: README });
