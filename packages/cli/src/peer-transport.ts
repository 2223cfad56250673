/**
 * The exchanges of perftest and ibv_*_pingpong do not name the transport, but packets do. The NIC drops and counts
 * packets of another transport; a test that sees any ends at once instead of waiting for its timeout.
 */

import { TRANSPORTS, type TransportName } from 'rocev2/internal/cm';
import { RoceError } from 'rocev2/internal/core';
import type { RdmaDevice } from 'rocev2/internal/verbs';

const CHECK_INTERVAL_MS = 50;

/** All queue pairs of the device must be of that transport. */
export async function expectTransport<T>(
  device: RdmaDevice,
  transport: TransportName,
  work: () => Promise<T>,
  others: readonly TransportName[] = TRANSPORTS.filter((other) => other !== transport),
): Promise<T> {
  const before = device.counters().rx_drop_qp_type;
  const foreignPackets = (): RoceError | undefined => {
    if (device.counters().rx_drop_qp_type === before) return undefined;
    const names = others.map((other) => other.toUpperCase()).join(' or ');
    return new RoceError(
      'ERR_ROCE_MISMATCH',
      `the peer sends ${names} packets, and this side has ${transport.toUpperCase()}`,
      'give both sides the same transport: --transport here; -c of perftest, ibv_rc_, _uc_ or _ud_pingpong there',
    );
  };
  const neverAnswered = () => device.counters().rx_accepted === 0;
  let timer: NodeJS.Timeout | undefined;
  const foreign = new Promise<never>((_, reject) => {
    timer = setInterval(() => {
      const error = foreignPackets();
      if (error !== undefined) reject(error);
    }, CHECK_INTERVAL_MS);
  });
  try {
    const result = await Promise.race([work(), foreign]);
    const error = foreignPackets();
    if (error !== undefined) throw error;
    return result;
  } catch (error) {
    const wasSilent = error instanceof RoceError && error.code === 'ERR_ROCE_COMPLETION' && neverAnswered();
    if (!wasSilent || transport !== 'rc') throw error;
    throw new RoceError(error.code, `${error.message}; it has not answered at all: was it started with -c UC or UD?`);
  } finally {
    clearInterval(timer);
  }
}
