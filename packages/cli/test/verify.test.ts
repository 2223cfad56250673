import { describe, expect, it } from 'vitest';
import { crc32 } from '../../../src/core/crc32.js';
import type { Endpoint } from '../src/transfer/endpoint.js';
import { verifyAsClient, verifyAsServer } from '../src/transfer/verify.js';

const OWN = Buffer.from('what was sent, twice 0123456789');

/** A client with two flows, and a server that says it holds `digests`. */
function clientOf(digests: readonly string[]): { endpoint: Endpoint; told: unknown[] } {
  const told: unknown[] = [];
  const endpoint = {
    plan: { op: 'write', sizeBytes: 10 },
    flows: [{ offset: 0 }, { offset: 10 }],
    region: { bytes: OWN },
    channel: { send: (message: unknown) => told.push(message), receive: async () => ({ digest: digests }) },
  };
  return { endpoint: endpoint as unknown as Endpoint, told };
}

const RIGHT = [0, 10].map((offset) => crc32(OWN.subarray(offset, offset + 10)).toString(16));

describe('the client judges what the server holds', () => {
  it.each([
    ['all that was sent', RIGHT, [1, 1], true],
    ['a flow with other bytes', [RIGHT[0], 'abcd'], [1, 1], false],
    ['a flow fewer', [RIGHT[0]], [1, 1], false],
    // Interrupted before the first message: there is nothing to be wrong.
    ['other bytes where nothing was sent', [RIGHT[0], 'abcd'], [1, 0], true],
    ['other bytes where something was sent', ['abcd', RIGHT[1]], [1, 0], false],
  ])('%s', async (_what, digests, counts, verdict) => {
    const { endpoint, told } = clientOf(digests);
    const { verified, arrived, returned } = await verifyAsClient(endpoint, { counts, stopped: false, last: true });
    expect({ verified, arrived, returned }).toEqual({ verified: verdict, arrived: undefined, returned: undefined });
    expect(told).toEqual([{ done: counts, stopped: false, last: true }]);
  });
});

describe('the server hears what its client has measured', () => {
  const MEASURED = { iterations: 3, lost: 0, seconds: 1, peakBps: null, directions: null, latencyNs: null };

  function serverThatHears(verdict: unknown): Endpoint {
    const heard = [{ done: [3], stopped: false, last: true }, verdict];
    const { endpoint } = clientOf([]);
    return { ...endpoint, channel: { send: () => {}, receive: async () => heard.shift() } } as unknown as Endpoint;
  }

  it('and takes its figures', async () => {
    const verdict = { verified: true, measured: MEASURED };
    expect(await verifyAsServer(serverThatHears(verdict))).toEqual({ ...verdict, last: true });
  });

  it.each([
    ['no figures', { verified: true }],
    ['figures below zero', { verified: true, measured: { ...MEASURED, seconds: -1 } }],
    ['half a message', { verified: true, measured: { ...MEASURED, iterations: 2.5 } }],
    ['nothing', null],
  ])('%s: it says so', async (_what, verdict) => {
    await expect(verifyAsServer(serverThatHears(verdict))).rejects.toMatchObject({
      code: 'ERR_ROCE_MISMATCH',
      message: expect.stringContaining('did not send its figures'),
    });
  });
});
