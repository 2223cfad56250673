/** docs/congestion-control.md names everything that can be set. */

import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { DCQCN_PRESETS } from '../../src/dcqcn/presets.js';
import { rateControls } from '../../src/dcqcn/rate-controls.js';

const text = readFileSync('docs/congestion-control.md', 'utf8');
const parameters = rateControls.definitions.flatMap(({ parameters }) => Object.keys(parameters));
// `none` and the rate of `fixed` have a sentence instead of a row.
const words = [...rateControls.names, ...Object.keys(DCQCN_PRESETS), ...new Set(parameters)].filter(
  (word) => word !== 'rateBps',
);

it.each(words)('%s is documented', (word) => {
  expect(text).toContain(`\`${word}\``);
});

it.runIf(existsSync('packages/cli/bin/rocev2.js'))('the tables of schemes are those of the registries', async () => {
  await promisify(execFile)(process.execPath, ['scripts/schemes-doc.js', '--check']);
});
