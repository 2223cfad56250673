import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('.', import.meta.url));

interface Alias {
  readonly find: RegExp;
  readonly replacement: string;
}

/** The entry points of a package, by the name that programs import, as their sources. */
function aliasesOf(folder: string): Alias[] {
  const { name, exports } = JSON.parse(readFileSync(`${ROOT}${folder}package.json`, 'utf8'));
  return Object.entries<Record<string, string>>(exports).flatMap(([entry, { '@rocev2/source': source }]) => {
    if (source === undefined) return [];
    const specifier = `^${name}${entry.slice(1)}$`.replaceAll('.', '\\.').replace('*', '(.+)');
    return [{ find: new RegExp(specifier), replacement: `${ROOT}${folder}${source.slice(2).replace('*', '$1')}` }];
  });
}

/** Lets tests import the packages of this repository as sources, so that they need no build. */
export const sources = {
  alias: ['', ...readdirSync(`${ROOT}packages`).map((name) => `packages/${name}/`)].flatMap(aliasesOf),
};
