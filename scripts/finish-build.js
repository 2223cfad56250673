// What tsc leaves to do: the executable bit that npm's bin links need when the package is run from a checkout, and the files that are
// not TypeScript: of the dashboard's page, and the agent of `rocev2 conform`.
import { chmodSync, copyFileSync } from 'node:fs';

const dist = new URL('../dist/', import.meta.url);
const page = new URL('../src/dashboard/page/', import.meta.url);

chmodSync(new URL('cli/main.js', dist), 0o755);
for (const name of ['index.html', 'style.css'])
  copyFileSync(new URL(name, page), new URL(`dashboard/page/${name}`, dist));
copyFileSync(new URL('../packages/inspect/src/commands/conform/agent.c', import.meta.url), new URL('cli/conform/agent.c', dist));
