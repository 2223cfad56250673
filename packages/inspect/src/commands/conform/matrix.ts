/** `rocev2 conform matrix`: results of several peers on one page. */

import { dirname, join } from 'node:path';
import {
  checkWritable,
  defineDocument,
  leftAligned,
  type Output,
  readJsonFile,
  rightAligned,
  writeOutputFile,
} from '@rocev2/command';
import { escapeXml, htmlPage } from '@rocev2/command/plot';
import { z } from 'zod';
import { RULES } from '../../audit/catalogue.js';
import type { CaseResult, CaseVerdict } from '../../conform/tester.js';
import { readBundle } from './bundle.js';
import { caseSection, verdictHtml } from './case-section.js';
import { type ConformRunResult, parseResult, VERDICTS, verdictOn } from './result.js';

const CONFORM_MATRIX_DOCUMENT = defineDocument<ConformMatrixResult>('conform-matrix');

interface MatrixPeer {
  readonly name: string;
  readonly cases: readonly CaseResult[];
}

/** What the peers make of one rule. */
export interface MatrixRule {
  /** Number of the rule. */
  readonly rule: number;
  /** The verdict on each peer, in the order of the peers; null: no case was run. */
  readonly verdicts: ReadonlyArray<CaseVerdict | null>;
}

/** The fields of `conform matrix --json`. */
export interface ConformMatrixResult {
  /** Names of the peers. */
  readonly peers: readonly string[];
  /** Rules that at least one peer was tested for. */
  readonly rules: readonly MatrixRule[];
}

const peersSchema = z.object({
  peers: z.array(z.object({ name: z.string(), results: z.array(z.string()).min(1) })).min(1),
});

export async function runMatrix(files: readonly string[], html: string | undefined, output: Output): Promise<void> {
  await checkWritable(html);
  const peers = (await Promise.all(files.map(readPeers))).flat();
  const rules = matrixOf(peers);
  output.table(
    [...rightAligned('Rule'), ...leftAligned('Level'), ...leftAligned(...peers.map(({ name }) => name))],
    rules.map(({ rule, verdicts }) => [
      rule,
      RULES.find(({ id }) => id === rule)!.severity,
      ...verdicts.map((verdict) => verdict ?? ''),
    ]),
  );
  output.document(CONFORM_MATRIX_DOCUMENT, { peers: peers.map(({ name }) => name), rules });
  if (html !== undefined) await writeOutputFile(html, matrixPage(peers, rules));
}

async function readPeers(path: string): Promise<MatrixPeer[]> {
  if (/\.(tgz|tar\.gz)$/.test(path)) return [peerOf(await readBundle(path))];
  const document = await readJsonFile(path);
  const list = peersSchema.safeParse(document);
  if (!list.success) return [peerOf(parseResult(document, path))];
  return Promise.all(
    list.data.peers.map(async ({ name, results }) => {
      const paths = results.map((result) => join(dirname(path), result));
      const peers = await Promise.all(paths.map(readPeers));
      return { name, cases: peers.flat().flatMap(({ cases }) => cases) };
    }),
  );
}

function peerOf({ name, cases }: ConformRunResult): MatrixPeer {
  return { name, cases };
}

function matrixOf(peers: readonly MatrixPeer[]): MatrixRule[] {
  return RULES.map(({ id }) => ({ rule: id, verdicts: peers.map(({ cases }) => verdictOn(id, cases) ?? null) })).filter(
    ({ verdicts }) => verdicts.some((verdict) => verdict !== null),
  );
}

function matrixPage(peers: readonly MatrixPeer[], rules: readonly MatrixRule[]): string {
  return htmlPage('Conformance of RoCEv2 peers', [
    '<h1>Conformance of RoCEv2 peers</h1>',
    '<p>A cell is the verdict on a rule, and leads to the case that decided it, with its packets.</p>',
    `<table><tr><th>Rule</th><th>Level</th>${peers.map(({ name }) => `<th>${escapeXml(name)}</th>`).join('')}<th>What it asks for</th></tr>`,
    ...rules.map(({ rule, verdicts }) => {
      const { severity, title } = RULES.find(({ id }) => id === rule)!;
      const cells = verdicts.map((verdict, peer) => `<td>${cell(rule, verdict, peers[peer], peer)}</td>`);
      return `<tr><td>${rule}</td><td>${severity}</td>${cells.join('')}<td class="text">${escapeXml(title)}</td></tr>`;
    }),
    '</table>',
    ...peers.flatMap(({ name, cases }, peer) => [
      `<h2>${escapeXml(name)}</h2>`,
      ...cases.flatMap((one, index) => caseSection(one, anchorOf(peer, index))),
    ]),
  ]);
}

function anchorOf(peer: number, index: number): string {
  return `peer-${peer + 1}-case-${index + 1}`;
}

function cell(rule: number, verdict: CaseVerdict | null, { cases }: MatrixPeer, peer: number): string {
  if (verdict === null) return '';
  const ofRule = cases.filter(({ rules }) => rules.includes(rule));
  const deciding = ofRule.filter((one) => one.verdict === verdict);
  const count =
    deciding.length < ofRule.length && verdict !== VERDICTS.at(-1) ? ` ${deciding.length} of ${ofRule.length}` : '';
  return `<a href="#${anchorOf(peer, cases.indexOf(deciding[0]))}">${verdictHtml(verdict)}${count}</a>`;
}
