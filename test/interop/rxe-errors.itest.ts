/**
 * Requests that the responder must refuse, between our queue pairs and Soft-RoCE's: every fatal NAK, provoked in both directions. What
 * was asked before succeeds, what was asked behind is flushed, at both ends, and not a byte is written.
 */

import { expect } from 'vitest';
import { cell } from './support/cell.js';
import { describeWithRig } from './support/describe-on-rig.js';
import { fillSum, runVerbs } from './support/verbs-pair.js';

const BUFFER_BYTES = 1 << 20;
const UNTOUCHED = fillSum(BUFFER_BYTES, 9);

const SUCCESS = 0;
const LOC_LEN_ERR = 1;
const LOC_QP_OP_ERR = 2;
const LOC_PROT_ERR = 4;
const WR_FLUSH_ERR = 5;
const REM_INV_REQ_ERR = 9;
const REM_ACCESS_ERR = 10;
const REM_OP_ERR = 11;

/** The counters of our requester, by the status that each goes with. */
const NAK_COUNTERS: Readonly<Record<number, string>> = {
  [REM_INV_REQ_ERR]: 'req_remote_invalid_request',
  [REM_ACCESS_ERR]: 'req_remote_access_errors',
  [REM_OP_ERR]: 'req_remote_operation_errors',
};

/** How a refused request ends: the requester's status, and that of the oldest receive at the responder. */
interface Verdict {
  readonly status: number;
  readonly receive: number;
}

interface Refusal {
  readonly what: string;
  /** Of refusals that differ in the operation alone, a round has a fifth. Default: all cells of this `what` are the group. */
  readonly group?: string;
  readonly request: string;
  readonly requesterOptions?: string;
  readonly responderOptions?: string;
  /** What the responder does before the request comes. */
  readonly preparation?: string;
  /** With Soft-RoCE as responder, and with us; undefined where that requester cannot be brought to ask. */
  readonly bySoftRoce: Verdict;
  readonly byUs: Verdict | undefined;
}

function always(status: number, rest: Omit<Refusal, 'bySoftRoce' | 'byUs'>): Refusal {
  const verdict = { status, receive: WR_FLUSH_ERR };
  return { ...rest, bySoftRoce: verdict, byUs: verdict };
}

/** In options: none of the letters rwa. */
const NO_ACCESS = '-';
const BEYOND = `${BUFFER_BYTES - 50}`;

const REFUSALS: readonly Refusal[] = [
  // The provider library of rxe refuses to post it.
  { ...always(REM_INV_REQ_ERR, { what: 'an atomic at an odd address', request: 'faa:1:4' }), byUs: undefined },
  always(REM_INV_REQ_ERR, {
    what: 'WRITE in packets of another path MTU',
    request: 'write:10000',
    requesterOptions: '-m 2048',
  }),
  ...['write:100', 'read:100', 'faa:1'].map((request) =>
    always(REM_INV_REQ_ERR, {
      what: `${request}, which the queue pair does not allow`,
      group: 'not allowed by the queue pair',
      request,
      responderOptions: `-A ${NO_ACCESS}`,
    }),
  ),
  ...['write:100', 'read:100', 'faa:1'].map((request) =>
    always(REM_ACCESS_ERR, {
      what: `${request}, which the region does not allow`,
      group: 'not allowed by the region',
      request,
      responderOptions: `-a ${NO_ACCESS}`,
    }),
  ),
  ...['write:100', 'write:5000', 'read:100', 'cas:0:1'].map((request) =>
    always(REM_ACCESS_ERR, {
      what: `${request} with a wrong key`,
      group: 'wrong key',
      request: `flipkey:1 ${request}`,
    }),
  ),
  ...[`write:100:${BEYOND}`, `read:100:${BEYOND}`, `faa:1:${BUFFER_BYTES}`].map((request) =>
    always(REM_ACCESS_ERR, { what: `${request}, beyond the end`, group: 'beyond the end', request }),
  ),
  {
    what: 'SEND too long for the receive',
    request: 'send:5000',
    responderOptions: '-r 4000',
    bySoftRoce: { status: REM_OP_ERR, receive: LOC_QP_OP_ERR },
    byUs: { status: REM_INV_REQ_ERR, receive: LOC_LEN_ERR },
  },
  {
    what: 'SEND into memory that is gone',
    request: 'send:5000',
    preparation: 'unreceive',
    bySoftRoce: { status: REM_OP_ERR, receive: LOC_QP_OP_ERR },
    byUs: { status: REM_OP_ERR, receive: LOC_PROT_ERR },
  },
];

await describeWithRig('refusals between us and Soft-RoCE', { mtu: 4200 }, (rig) => {
  const tool = 'rigverbs';
  for (const role of ['client', 'server'] as const) {
    for (const { family, mtu } of [
      { family: 4, mtu: 1024 },
      { family: 6, mtu: 4096 },
    ] as const) {
      const options = `-e -m ${mtu}`;

      for (const refusal of REFUSALS) {
        const verdict = role === 'client' ? refusal.bySoftRoce : refusal.byUs;
        if (verdict === undefined) continue;
        const { what, group, request, requesterOptions = '', responderOptions = '', preparation = '' } = refusal;
        const run = async () => {
          const posted = request.replace(/\S+$/, '+$&'); // what is asked behind it is posted before the answer comes
          const { requester, responder, ours, theirs } = await runVerbs(rig(), {
            role,
            family,
            options,
            requester: { options: requesterOptions, operations: `send:0 sync ${posted} +send:1 drain sync` },
            responder: {
              options: responderOptions,
              operations: `fill:9 recv:1 ${preparation} sync recv:1 sync sum:${BUFFER_BYTES}`,
            },
          });
          expect([theirs.exitCode, ours.exitCode], theirs.text + ours.text).toEqual([0, 0]);
          expect(statuses(requester.sends)).toEqual([SUCCESS, verdict.status, WR_FLUSH_ERR]);
          expect(statuses(responder.receives)).toEqual([SUCCESS, verdict.receive]);
          expect(responder.sums).toEqual([UNTOUCHED]);
          const counter = role === 'client' ? NAK_COUNTERS[verdict.status] : 'resp_nak_fatal';
          expect(ours.counters).toMatchObject({ [counter as string]: 1 });
        };
        cell({ tool, role, family, mtu, what }, run, { group });
      }

      cell({ tool, role, family, mtu, what: 'SEND that invalidates a wrong key' }, async () => {
        const { requester, responder, ours, theirs } = await runVerbs(rig(), {
          role,
          family,
          options,
          requester: { operations: 'learn flipkey:1 sendinv:10 sync' },
          responder: { operations: 'bind recv:2 sync' },
        });
        expect([theirs.exitCode, ours.exitCode], theirs.text + ours.text).toEqual([0, 0]);
        // An error of the responder's alone: the requester sees success.
        expect(statuses(requester.sends)).toEqual([SUCCESS]);
        expect(statuses(responder.receives)).toEqual([REM_INV_REQ_ERR, WR_FLUSH_ERR]);
      });

      cell({ tool, role, family, mtu, what: 'WRITE with a key that was invalidated' }, async () => {
        const { requester, responder, ours, theirs } = await runVerbs(rig(), {
          role,
          family,
          options,
          requester: { operations: 'fill:3 learn write:100 sendinv:10 fill:5 write:100 sync' },
          responder: { operations: 'fill:9 bind recv:1 sync sum:100' },
        });
        expect([theirs.exitCode, ours.exitCode], theirs.text + ours.text).toEqual([0, 0]);
        expect(statuses(requester.sends)).toEqual([SUCCESS, SUCCESS, REM_ACCESS_ERR]);
        expect(responder.sums).toEqual([fillSum(100, 3)]);
      });
    }
  }
});

function statuses(completions: readonly { readonly status: number }[]): number[] {
  return completions.map(({ status }) => status);
}
