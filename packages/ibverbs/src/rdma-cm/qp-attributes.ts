/** The attributes that a queue pair of a connection needs in its next state, as librdmacm gets them. */

import { type activeParameters, pathMtuCode, UDP_QKEY } from 'rocev2/internal/cm';
import type { IpAddress } from 'rocev2/internal/packet';
import { Access } from 'rocev2/internal/verbs';
import { buildQpAttr } from './layout.js';

export const QPS_INIT = 1;
const QPS_RTR = 2;
const QPS_RTS = 3;
const MASK_INIT = 0x31;
const MASK_ACCESS = 1 << 3;
const MASK_QKEY = 1 << 6;
const MASK_RTR = 0x12_9181;
const MASK_RTS = 0x1_2e01;

type Parameters = ReturnType<typeof activeParameters>;

export function initAttributes(isDatagram: boolean, isConnected: boolean): Buffer {
  const state = QPS_INIT;
  if (isDatagram) return buildQpAttr({ mask: MASK_INIT | MASK_QKEY, state, qkey: UDP_QKEY });
  return buildQpAttr({ mask: MASK_INIT | MASK_ACCESS, state, accessFlags: isConnected ? Access.REMOTE_ALL : 0 });
}

/** Undefined: `state` is not that of a connection. `timeout`: the program's own for acknowledgements. */
export function connectionAttributes(
  state: number,
  { toRtr, toRts }: Parameters,
  remote: IpAddress,
  timeout: number | undefined,
): Buffer | undefined {
  if (state === QPS_RTS) {
    const numbers = numbersOf(toRts);
    return buildQpAttr({ mask: MASK_RTS, ...numbers, timeout: timeout ?? numbers.timeout, state });
  }
  if (state !== QPS_RTR) return undefined;
  const path = { remote, dscp: toRtr.av!.dscp ?? 0, pathMtuCode: pathMtuCode(toRtr.pathMtu!) };
  return buildQpAttr({ mask: MASK_RTR, ...numbersOf(toRtr), ...path, state });
}

function numbersOf({ destQpn, rqPsn, sqPsn, maxRdAtomic, maxDestRdAtomic, ...rest }: Parameters['toRtr']) {
  const { minRnrTimer, timeout, retryCnt, rnrRetry } = rest;
  return { destQpn, rqPsn, sqPsn, maxRdAtomic, maxDestRdAtomic, minRnrTimer, timeout, retryCnt, rnrRetry };
}
