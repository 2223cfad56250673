/** The client's side of RESUME: the first exchange on a connection. */

import type { Clock } from '../../core/clock.js';
import { RoceError } from '../../core/errors.js';
import type { SkClientChannel } from './channel.js';
import { checksOf, firstBadBlock } from './data-checks.js';
import { whyWrong, wrongDisk } from './expected-disk.js';
import { SK_INLINE, SK_NO_SLOT } from './request.js';
import { decodeResumeResponse, encodeResumeRequest, type ResumeRequest, type ResumeResponse } from './resume.js';

/**
 * Asks to go on with a session. Rejects with ERR_ROCE_CONNECT when the server refuses, does not answer in time, or the channel fails, and with
 * ERR_ROCE_MISMATCH when it has another disk.
 */
export async function resumeSession(
  channel: SkClientChannel,
  clock: Clock,
  disk: number,
  resume: ResumeRequest,
  timeoutNs: number,
): Promise<ResumeResponse> {
  const body = encodeResumeRequest(resume);
  let cancel: () => void = () => {};
  try {
    return await new Promise((resolve, reject) => {
      cancel = clock.wakeAt(clock.nowNs() + timeoutNs, () => reject(refusal('no answer')));
      channel.onFailure = reject;
      channel.onReply = ({ response, list, data }) => {
        const intact = firstBadBlock(data, { dataCrc: response.dataCrc, list }) < 0;
        const isKnown = response.status === 'OK' || response.status === 'WRONG_DISK';
        const server = isKnown && intact ? decodeResumeResponse(data) : undefined;
        if (server === undefined) reject(refusal(response.status));
        else if (response.status === 'OK') resolve(server);
        else reject(wrongDisk(whyWrong(resume.disk, server.disk) ?? 'it refuses the session'));
      };
      const request = {
        op: 'RESUME',
        flags: SK_INLINE,
        sessionLow: sessionLow(resume.sessionId),
        slot: SK_NO_SLOT,
        slotSeq: 0,
        disk,
        offset: 0,
        length: body.length,
      } as const;
      channel.send({ request, data: body, checks: checksOf(body) });
    });
  } finally {
    cancel();
  }
}

/** The half of a session's id that stands in every request. */
export function sessionLow(sessionId: Uint8Array): bigint {
  return Buffer.from(sessionId).readBigUInt64LE(0);
}

function refusal(why: string): RoceError {
  return new RoceError('ERR_ROCE_CONNECT', `the storage server does not resume the session: ${why}`);
}
