/** The version of this package. */

import { readFileSync } from 'node:fs';

/** `0.1.0`, from package.json. */
export function packageVersion(): string {
  const url = new URL('../../../package.json', import.meta.url); // the same from src/cli and dist/cli
  return (JSON.parse(readFileSync(url, 'utf8')) as { version: string }).version;
}
