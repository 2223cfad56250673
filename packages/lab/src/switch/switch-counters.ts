/**
 * Counters of a switch port, with names in the style of `ethtool -S`. Two equations always hold:
 *
 *   rx_packets = rx_forwarded + rx_flooded + rx_pfc_packets + all rx_dropped_*            for every port
 *   rx_forwarded + rx_flooded * (ports - 1) + faults_duplicated                           over all ports
 *     = tx_packets - tx_pfc_packets + all tx_dropped_* + frames queued or held back
 */

import { type FaultCounters, newFaultCounters } from 'rocev2/internal/faults';
import { PRIORITIES } from 'rocev2/internal/packet';

type Priority = 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7;

/** Frames that asked for a pause of each priority; those that ended one are only in `..._pfc_packets`. */
interface PauseCounters {
  /** Pause frames came in that asked for a pause of priority 0. */
  rx_prio0_pause: number;
  /** Pause frames came in that asked for a pause of priority 1. */
  rx_prio1_pause: number;
  /** Pause frames came in that asked for a pause of priority 2. */
  rx_prio2_pause: number;
  /** Pause frames came in that asked for a pause of priority 3. */
  rx_prio3_pause: number;
  /** Pause frames came in that asked for a pause of priority 4. */
  rx_prio4_pause: number;
  /** Pause frames came in that asked for a pause of priority 5. */
  rx_prio5_pause: number;
  /** Pause frames came in that asked for a pause of priority 6. */
  rx_prio6_pause: number;
  /** Pause frames came in that asked for a pause of priority 7. */
  rx_prio7_pause: number;
  /** Pause frames left that asked for a pause of priority 0. */
  tx_prio0_pause: number;
  /** Pause frames left that asked for a pause of priority 1. */
  tx_prio1_pause: number;
  /** Pause frames left that asked for a pause of priority 2. */
  tx_prio2_pause: number;
  /** Pause frames left that asked for a pause of priority 3. */
  tx_prio3_pause: number;
  /** Pause frames left that asked for a pause of priority 4. */
  tx_prio4_pause: number;
  /** Pause frames left that asked for a pause of priority 5. */
  tx_prio5_pause: number;
  /** Pause frames left that asked for a pause of priority 6. */
  tx_prio6_pause: number;
  /** Pause frames left that asked for a pause of priority 7. */
  tx_prio7_pause: number;
}

export function pauseFrames(counters: Readonly<Partial<PauseCounters>>, direction: 'rx' | 'tx'): number {
  let frames = 0;
  for (let priority = 0; priority < PRIORITIES; priority++) {
    frames += counters[`${direction}_prio${priority as Priority}_pause`] ?? 0;
  }
  return frames;
}

/** Counters of one port: frames unless the name says bytes, totals since the switch was made. */
export interface SwitchPortCounters extends PauseCounters, FaultCounters {
  /** Frames that came in. */
  rx_packets: number;
  /** Without check sequence. */
  rx_bytes: number;
  /** Frames for one known port. */
  rx_forwarded: number;
  /** Broadcast, multicast and unknown destinations: one copy to every other port. */
  rx_flooded: number;
  /** Pause frames of the neighbour. */
  rx_pfc_packets: number;
  /** No Ethernet header. */
  rx_dropped_too_short: number;
  /** Longer than `frameBytesMax`. */
  rx_dropped_too_long: number;
  /** A group address as sender: no such station exists. */
  rx_dropped_source_multicast: number;
  /**
   * 01-80-C2-00-00-0x never crosses a bridge (IEEE 802.1Q table 8-1); pause frames are of this kind where PFC is off.
   */
  rx_dropped_link_local: number;
  /** MAC control frames other than PFC. */
  rx_dropped_bad_pfc: number;
  /** The destination is known to be where the frame came from. */
  rx_dropped_same_port: number;
  /** No route, not learnt, and flooding is off. */
  rx_dropped_no_route: number;
  /** From a port and priority in a pause storm. */
  rx_dropped_watchdog: number;
  /** Frames that left. */
  tx_packets: number;
  /** Without check sequence. */
  tx_bytes: number;
  /** Pause frames that this port sent; part of `tx_packets` and `tx_bytes`. */
  tx_pfc_packets: number;
  /** Frames that this port has marked. */
  tx_ecn_marked: number;
  /** Trimmed to their header because their queue was full, and forwarded. */
  tx_trimmed: number;
  /** By a fault rule. */
  tx_dropped_fault: number;
  /** `queuePackets` frames waited already. */
  tx_dropped_queue_full: number;
  /** No slot was left in the switch's packet memory. */
  tx_dropped_buffer_full: number;
  /** The lossy queue was over its dynamic threshold. */
  tx_dropped_lossy_threshold: number;
  /** Lossy, and nothing was left of its pools. */
  tx_dropped_pool_full: number;
  /** Lossless, and its ingress queue had no headroom left. */
  tx_dropped_headroom: number;
  /** A mark was due on a packet that cannot carry one. */
  tx_dropped_not_ect: number;
  /** For a queue in a pause storm. */
  tx_dropped_watchdog: number;
  /** Pause storms that began. */
  pfcwd_storms: number;
  /** Pause storms that ended. */
  pfcwd_restored: number;
}

export function newSwitchPortCounters(): SwitchPortCounters {
  return {
    rx_packets: 0,
    rx_bytes: 0,
    rx_forwarded: 0,
    rx_flooded: 0,
    rx_pfc_packets: 0,
    rx_dropped_too_short: 0,
    rx_dropped_too_long: 0,
    rx_dropped_source_multicast: 0,
    rx_dropped_link_local: 0,
    rx_dropped_bad_pfc: 0,
    rx_dropped_same_port: 0,
    rx_dropped_no_route: 0,
    rx_dropped_watchdog: 0,
    tx_packets: 0,
    tx_bytes: 0,
    tx_pfc_packets: 0,
    tx_ecn_marked: 0,
    tx_trimmed: 0,
    tx_dropped_fault: 0,
    tx_dropped_queue_full: 0,
    tx_dropped_buffer_full: 0,
    tx_dropped_lossy_threshold: 0,
    tx_dropped_pool_full: 0,
    tx_dropped_headroom: 0,
    tx_dropped_not_ect: 0,
    tx_dropped_watchdog: 0,
    pfcwd_storms: 0,
    pfcwd_restored: 0,
    ...newFaultCounters(),
    rx_prio0_pause: 0,
    rx_prio1_pause: 0,
    rx_prio2_pause: 0,
    rx_prio3_pause: 0,
    rx_prio4_pause: 0,
    rx_prio5_pause: 0,
    rx_prio6_pause: 0,
    rx_prio7_pause: 0,
    tx_prio0_pause: 0,
    tx_prio1_pause: 0,
    tx_prio2_pause: 0,
    tx_prio3_pause: 0,
    tx_prio4_pause: 0,
    tx_prio5_pause: 0,
    tx_prio6_pause: 0,
    tx_prio7_pause: 0,
  };
}

export function countPauses(
  counters: PauseCounters,
  direction: 'rx' | 'tx',
  enabled: number,
  quanta: Uint16Array,
): void {
  quanta.forEach((time, priority) => {
    if (time > 0 && (enabled & (1 << priority)) !== 0) counters[`${direction}_prio${priority as Priority}_pause`]++;
  });
}
