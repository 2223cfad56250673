/** A bundle of the simulated target with faults in its sources, loaded beside the sound one. */

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { build } from 'esbuild';
import type { Edit } from './mutant.js';
import type * as simulatedTarget from './simulated-target.js';

const ROOT = join(import.meta.dirname, '../../../..');
const load = createRequire(import.meta.url);

/** The source with its edits. Throws when what an edit looks for does not occur exactly once. */
function edited(file: string, edits: readonly Edit[]): string {
  let text = readFileSync(join(ROOT, 'src', file), 'utf8');
  for (const { find, replace } of edits.filter((edit) => edit.file === file)) {
    const places = text.split(find).length - 1;
    if (places !== 1) throw new Error(`src/${file} has '${find}' ${places} times; a mutant needs it once`);
    text = text.replace(find, () => replace);
  }
  return text;
}

/** Builds and loads the engine; `name` is that of a file in `folder`. */
export async function mutatedEngine(
  folder: string,
  name: string,
  edits: readonly Edit[],
): Promise<typeof simulatedTarget> {
  const files = [...new Set(edits.map(({ file }) => file))];
  const outfile = join(folder, `${name}.cjs`);
  await build({
    entryPoints: [join(import.meta.dirname, 'simulated-target.ts')],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'cjs',
    logLevel: 'error',
    conditions: ['@rocev2/source'],
    logOverride: { 'empty-import-meta': 'silent' },
    plugins: [
      {
        name: 'mutate',
        setup: ({ onLoad }) => {
          for (const file of files) {
            const path = join(ROOT, 'src', file).replaceAll(/[.+\\]/g, '\\$&');
            onLoad({ filter: new RegExp(`^${path}$`) }, () => ({ contents: edited(file, edits), loader: 'ts' }));
          }
        },
      },
    ],
  });
  return load(outfile) as typeof simulatedTarget;
}
