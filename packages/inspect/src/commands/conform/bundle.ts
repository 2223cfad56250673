import { readInputFile } from '@rocev2/command';
import { createTarGzip, parseTarGzip } from 'nanotar';
import { RoceError } from 'rocev2/internal/core';
import { type ConformRunResult, parseResult } from './result.js';

const RESULTS = 'results.json';

export interface BundleParts {
  readonly results: string;
  readonly report: string;
  readonly packets: Uint8Array;
  readonly environment: string;
}

export function makeBundle({ results, report, packets, environment }: BundleParts): Promise<Uint8Array> {
  return createTarGzip([
    { name: RESULTS, data: results },
    { name: 'report.html', data: report },
    { name: 'packets.pcapng', data: packets },
    { name: 'environment.json', data: environment },
  ]);
}

export async function readBundle(path: string): Promise<ConformRunResult> {
  const bytes = await readInputFile(path);
  try {
    const files = await parseTarGzip(bytes);
    const text = files.find(({ name }) => name === RESULTS)?.text;
    if (text !== undefined) return parseResult(JSON.parse(text), path);
  } catch (cause) {
    if (cause instanceof RoceError) throw cause;
    throw notABundle(path, cause);
  }
  throw notABundle(path);
}

function notABundle(path: string, cause?: unknown): RoceError {
  return new RoceError(
    'ERR_ROCE_MALFORMED',
    `${path} is not a bundle of rocev2 conform run: it has no ${RESULTS}`,
    'make it by rocev2 conform run HOST --bundle FILE',
    { cause },
  );
}
