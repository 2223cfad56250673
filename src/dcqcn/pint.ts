/**
 * HPCC over PINT (Ben Basat et al., "PINT: Probabilistic In-band Network Telemetry", SIGCOMM 2020, §4.3): one byte per
 * packet instead of one record per hop. Switches compute the utilization of their ports, and the packet carries the
 * largest, coded in steps of 5 %. The window is that of HPCC.
 *
 * T of switches (`int.baseRttNs`) and of flows (`baseRttNs`) should be the same. Every packet carries the digest: p = 1
 * in the paper's terms.
 */

import { decodeDigest, INT_DATA_DIGEST } from '../packet/int-trailer.js';
import { type Acknowledgement, defineRateControl } from './rate-control.js';
import { UTILIZATION_WINDOW_TABLE, UtilizationWindow } from './utilization-window.js';

export class HpccPint extends UtilizationWindow {
  override readonly intKind: number = INT_DATA_DIGEST;

  override onAck({ echo, rttNs }: Readonly<Acknowledgement>, now: number): void {
    // 0: no switch on the path has written a digest.
    if (echo !== undefined && echo.digest > 0) this.react(decodeDigest(echo.digest), rttNs, now);
  }
}

export const hpccPint = defineRateControl({
  name: 'hpcc-pint',
  summary: "HPCC's window by one byte of telemetry per packet",
  parameters: UTILIZATION_WINDOW_TABLE,
  create: (parameters) => new HpccPint(parameters),
});
