// The packages of this repository, for scripts.
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../', import.meta.url));

/** The folders of all packages, from the root; that of the transport is ''. */
export function packageFolders() {
  return ['', ...readdirSync(`${ROOT}packages`).map((name) => `packages/${name}/`)];
}

/** package.json of a folder. */
export function manifestOf(folder) {
  return JSON.parse(readFileSync(`${ROOT}${folder}package.json`, 'utf8'));
}
