/**
 * What a switch port has seen, under names as `ethtool -S` gives them. Two sums always hold:
 *
 *   rx_packets = rx_forwarded + rx_flooded + all rx_dropped_*                             for every port
 *   rx_forwarded + rx_flooded * (ports - 1) + faults_duplicated                           over all ports
 *     = tx_packets + all tx_dropped_* + frames queued or held back
 */
export interface SwitchPortCounters {
  rx_packets: number;
  rx_bytes: number;
  /** Frames for one known port. */
  rx_forwarded: number;
  /** Broadcast, multicast and unknown destinations: one copy to every other port. */
  rx_flooded: number;
  rx_dropped_too_short: number;
  rx_dropped_too_long: number;
  /** A group address as sender: no such station exists. */
  rx_dropped_source_multicast: number;
  /** 01-80-C2-00-00-0x never crosses a bridge (IEEE 802.1Q table 8-1); pause frames are of this kind. */
  rx_dropped_link_local: number;
  /** The destination is known to be where the frame came from. */
  rx_dropped_same_port: number;
  tx_packets: number;
  tx_bytes: number;
  tx_dropped_fault: number;
  tx_dropped_queue_full: number;
  /** No slot was left in the switch's packet buffer. */
  tx_dropped_buffer_full: number;
  faults_corrupted: number;
  faults_duplicated: number;
  faults_delayed: number;
}

export function newSwitchPortCounters(): SwitchPortCounters {
  return {
    rx_packets: 0,
    rx_bytes: 0,
    rx_forwarded: 0,
    rx_flooded: 0,
    rx_dropped_too_short: 0,
    rx_dropped_too_long: 0,
    rx_dropped_source_multicast: 0,
    rx_dropped_link_local: 0,
    rx_dropped_same_port: 0,
    tx_packets: 0,
    tx_bytes: 0,
    tx_dropped_fault: 0,
    tx_dropped_queue_full: 0,
    tx_dropped_buffer_full: 0,
    faults_corrupted: 0,
    faults_duplicated: 0,
    faults_delayed: 0,
  };
}
