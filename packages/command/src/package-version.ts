import { readFileSync } from 'node:fs';

export function packageVersion(): string {
  const url = new URL('../package.json', import.meta.url); // The same from src and dist.
  return (JSON.parse(readFileSync(url, 'utf8')) as { version: string }).version;
}
