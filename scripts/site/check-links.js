// @ts-check
/** Checks every link, picture and anchor of a folder of HTML pages: `node scripts/site/check-links.js site`. Links to other hosts are not followed. */

import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';

const folder = process.argv[2];
if (folder === undefined) throw new Error('usage: node scripts/site/check-links.js FOLDER');

const files = new Set(
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(folder, path.join(entry.parentPath, entry.name))),
);
const pages = new Map(
  [...files]
    .filter((file) => file.endsWith('.html'))
    .map((file) => {
      const html = readFileSync(path.join(folder, file), 'utf8');
      const ids = new Set([...html.matchAll(/\s(?:id|name)="([^"]+)"/g)].map(([, id]) => id));
      const links = [...html.matchAll(/<(?:a|link|img|script)\b[^>]*?\s(?:href|src)="([^"]+)"/g)].map(([, to]) => to);
      return [file, { ids, links }];
    }),
);

let count = 0;
const dead = [];
for (const [page, { links }] of pages) {
  for (const link of links) {
    if (/^[a-z]+:/.test(link)) continue;
    count++;
    const [target, anchor] = link.replaceAll('&amp;', '&').split('#').map(decodeURIComponent);
    const file = target === '' ? page : path.join(path.dirname(page), target.replace(/\?.*/, ''));
    const known = pages.get(file);
    if (!files.has(file)) dead.push(`${page}: ${link} is not there`);
    else if (anchor && known !== undefined && !known.ids.has(anchor)) dead.push(`${page}: ${link} has no such anchor`);
  }
}
for (const line of dead) console.error(line);
console.log(`${pages.size} pages, ${count} links, ${dead.length} dead`);
if (dead.length > 0 || pages.size === 0) process.exitCode = 1;
