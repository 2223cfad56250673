import type { Clock } from '../../core/clock.js';
import { RoceError } from '../../core/errors.js';
import { NS_PER_MS } from '../../core/units.js';
import type { SkClientChannel } from './channel.js';
import { checksOf, firstBadBlock } from './data-checks.js';
import { whyWrong, wrongDisk } from './expected-disk.js';
import { DiskInUse, fencedBy } from './lease-request.js';
import { NotOwnerRedirect } from './not-owner-redirect.js';
import { SK_INLINE, SK_NO_SLOT } from './request.js';
import type { SkStatus } from './response.js';
import { decodeResumeResponse, encodeResumeRequest, type ResumeRequest, type ResumeResponse } from './resume.js';

/**
 * Requests to continue a session. Rejects with ERR_ROCE_CONNECT when the server refuses, does not answer in time, or
 * the channel fails, and with ERR_ROCE_MISMATCH when it has another disk, with a {@link DiskInUse} when another client
 * writes to it, with ERR_ROCE_FENCED when others have written to it since, with ERR_ROCE_NOT_FOUND when there is no
 * such disk, with a {@link NotOwnerRedirect} when the server does not own the disk.
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
        const server = intact ? decodeResumeResponse(data) : undefined;
        if (response.status === 'OK' && server !== undefined) resolve(server);
        else if (response.status === 'OK') reject(refusal('its answer is damaged, or impossible for a disk'));
        else reject(refusalBy(response.status, server, resume));
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

/** The half of a session's id in every request. */
export function sessionLow(sessionId: Uint8Array): bigint {
  return Buffer.from(sessionId).readBigUInt64LE(0);
}

/** The server compares openings that the client does not know of. */
const OTHER_COPY = 'it is an older or another copy of the disk that was used, as a restored backup is';

function refusalBy(status: SkStatus, server: ResumeResponse | undefined, { wanted, disk }: ResumeRequest): RoceError {
  if (status === 'NO_DISK') {
    const which = wanted === '' ? 'of this number' : `'${wanted}'`;
    const hint = wanted === '' ? 'name one of its disks' : undefined;
    return new RoceError('ERR_ROCE_NOT_FOUND', `the storage server has no disk ${which}`, hint);
  }
  if (status === 'NOT_OWNER') return new NotOwnerRedirect('the storage server does not own the disk');
  if (server === undefined) return refusal(status);
  if (status === 'LEASED') return new DiskInUse(server.holder, server.holderMs * NS_PER_MS);
  if (status === 'FENCED') return fencedBy(server.holder.label);
  if (status === 'WRONG_DISK') return wrongDisk(whyWrong(disk, server.disk) ?? OTHER_COPY);
  return refusal(status);
}

function refusal(why: string): RoceError {
  return new RoceError('ERR_ROCE_CONNECT', `the storage server does not resume the session: ${why}`);
}
