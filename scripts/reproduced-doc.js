// Runs the commands of scripts/reproduced/claims.js and writes packages/lab/docs/reproduced.md: `npm run reproduced`.
// With the ids of rows it runs these alone, and keeps the others as the page has them: `npm run reproduced -- ecn-10`.
// It writes the page after each row. The runs are in virtual time: every machine gets the same page.
import { execFile } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import process from 'node:process';
import { promisify } from 'node:util';
import { PAPERS } from './reproduced/claims.js';
import { pageOf, rowsOf, wordsOf } from './reproduced/page.js';

const PAGE = new URL('../packages/lab/docs/reproduced.md', import.meta.url);
const PROGRAM = new URL('../packages/cli/bin/rocev2.js', import.meta.url).pathname;
const OUTPUT_BYTES_MAX = 2 ** 30;
const execute = promisify(execFile);

const ids = process.argv.slice(2);
const claims = PAPERS.flatMap((paper) => paper.claims);
const unknown = ids.filter((id) => !claims.some((claim) => claim.id === id));
if (unknown.length > 0) {
  console.error(`no such row: ${unknown.join(', ')}; there are ${claims.map(({ id }) => id).join(', ')}`);
  process.exit(2);
}

const documents = new Map();
const judgements = existsSync(PAGE) ? rowsOf(readFileSync(PAGE, 'utf8')) : new Map();
for (const { id, commands, judge } of claims) {
  if (judge === undefined || (ids.length > 0 && !ids.includes(id))) continue;
  const judgement = judge(...(await documentsOf(commands)));
  console.log(`${id}: ${judgement.holds ? 'holds' : 'does not hold'}: ${judgement.ours}`);
  judgements.set(id, judgement);
  writeFileSync(PAGE, pageOf(judgements));
}

/** Rows may have the same commands. */
function documentsOf(commands) {
  return Promise.all(
    commands.map((command) => {
      if (!documents.has(command)) documents.set(command, documentOf(command));
      return documents.get(command);
    }),
  );
}

/** A command ends with 1 if an assertion of its scenario fails; its document is judged all the same. */
async function documentOf(command) {
  const args = [PROGRAM, ...wordsOf(command), '--json'];
  const { stdout } = await execute(process.execPath, args, { maxBuffer: OUTPUT_BYTES_MAX }).catch((error) => error);
  if (!stdout?.startsWith('{')) throw new Error(`no document: ${command}`);
  return JSON.parse(stdout);
}
