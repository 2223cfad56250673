/**
 * The NIC's counters: one declared list, from which the shared array, the JSON output and the documentation follow.
 * Names are those operators grep for (mlx5 and rxe `hw_counters`) where such a name exists.
 */

const COUNTERS = {
  tx_packets: 'datagrams handed to the port',
  tx_bytes: 'UDP payload bytes handed to the port',
  rx_packets: 'datagrams received by the port',
  rx_bytes: 'UDP payload bytes received by the port',
  rx_socket_overruns:
    'datagrams that the kernel dropped because the receive buffer was full, as it counts them (Linux)',
  rx_accepted: 'datagrams that passed every check and reached a QP',
  rx_drop_parse: 'malformed packets: length, opcode, pad or TVer',
  rx_drop_no_qp: 'packets for a QPN that does not exist',
  rx_drop_qp_type: 'packets whose transport class is not the QP’s',
  rx_drop_qp_state: 'packets for a QP that does not receive in its state',
  rx_drop_address: 'packets from or to another address than the connection’s',
  rx_drop_source_port: 'packets from the address of the connection’s peer, but from another UDP source port',
  rx_drop_pkey: 'packets with another P_Key',
  rx_drop_qkey: 'UD packets with another Q_Key',
  rx_icrc_errors: 'packets with a wrong ICRC',
  rx_icrc_id_solved: 'IPv4 packets whose identification was recovered from the ICRC',
  np_ecn_marked_roce_packets: 'packets that arrived with ECN = CE',
  np_cnp_sent: 'congestion notification packets sent',
  rp_cnp_handled: 'congestion notification packets that lowered a rate',
  rp_cnp_ignored:
    'congestion notification packets that changed nothing: no ECT or no DCQCN there, or too soon after the last one',
  rp_cnp_suspicious:
    'congestion notification packets that no packet of ours can have caused: more than it sent with ECT, or too long after; not heeded',
  rx_prio0_pause: 'times a PFC frame paused or resumed priority 0',
  rx_prio1_pause: 'the same for priority 1',
  rx_prio2_pause: 'the same for priority 2',
  rx_prio3_pause: 'the same for priority 3',
  rx_prio4_pause: 'the same for priority 4',
  rx_prio5_pause: 'the same for priority 5',
  rx_prio6_pause: 'the same for priority 6',
  rx_prio7_pause: 'the same for priority 7',
  rx_write_requests: 'WRITE messages executed as responder',
  rx_read_requests: 'READ requests answered as responder',
  rx_atomic_requests: 'atomics executed as responder',
  rx_send_messages: 'SEND messages received',
  out_of_sequence: 'request packets that arrived ahead of the expected PSN',
  duplicate_request: 'request packets behind the expected PSN',
  out_of_buffer: 'requests that found no receive WQE (RC: RNR NAK sent)',
  packet_seq_err: 'NAK PSN sequence errors received',
  implied_nak_seq_err: 'acknowledgements that jumped past an unanswered READ or atomic',
  rnr_nak_received: 'RNR NAKs received',
  rnr_nak_retry_err: 'QPs that ran out of RNR retries',
  local_ack_timeout_err: 'acknowledgement timeouts',
  retry_exceeded_err: 'QPs that ran out of retries',
  read_response_gaps: 'READ responses that arrived ahead of the one needed',
  req_remote_invalid_request: 'NAK invalid request received',
  req_remote_access_errors: 'NAK remote access error received',
  req_remote_operation_errors: 'NAK remote operational error received',
  req_cqe_error: 'error completions on send queues',
  resp_cqe_error: 'error completions on receive queues',
  resp_nak_sequence: 'NAK PSN sequence errors sent',
  resp_nak_fatal: 'NAK 0x61..0x63 sent',
  tx_data_packets: 'request and READ response packets that carry payload',
  tx_ack_packets: 'ACK, NAK and SACK packets sent',
  tx_retransmitted: 'request packets sent again, and READ response packets sent on a repeated request',
  retry_rewinds: 'times a requester went back',
  retry_rewind_packets: 'packets it had already sent beyond the point it went back to (the W of a go-back scheme)',
  sack_sent: 'selective acknowledgements sent',
  rx_trimmed: 'packets that a switch had cut to their header',
  trim_nak_sent: 'packets asked for again because a switch had cut them',
  trim_nak_received: 'packets sent again because a switch had cut them',
  reorder_stored: 'packets kept ahead of a gap by selective repeat',
  reorder_dropped: 'packets too far ahead to be kept',
  reorder_conflicts: 'packets that differ from the one kept with the same PSN; neither is kept',
  stale_response: 'responses for PSNs already done',
  unsent_response: 'responses, or bits of a SACK, for PSNs never sent: no honest peer sends them',
  uc_messages_dropped:
    'UC messages dropped whole: a packet was missing, no receive WQE was posted, or access was refused',
  secure_tx_sealed: 'packets sealed and handed to the wire (secure mode)',
  secure_rx_opened: 'packets that were authentic and new, and were opened',
  secure_rekeys: 'changes of the key of what is sent',
  secure_drop_plain: 'plain packets where packets have to be protected',
  secure_drop_malformed: 'packets in PSP that carry no RoCEv2 packet, or have options that are not spoken here',
  secure_drop_unknown_spi: 'packets in PSP for an association that does not exist',
  secure_drop_address: 'packets in PSP from another address or UDP port than that of the association',
  secure_drop_replayed: 'packets in PSP that came before, or so late that it cannot be told',
  secure_drop_forged: 'packets in PSP that the peer has not sealed: changed, cut, or made up',
  secure_tx_drop_no_association: 'packets that were not sent, because there are no keys for their destination',
  secure_tx_drop_exhausted:
    'packets that were not sent, because their key was used up and the peer had not followed to the next',
  events_lost: 'async events that found the event ring full',
  interrupts: 'times the NIC told its application of new events; one may stand for many',
} as const;

/** Name of a counter of the NIC, as mlx5 and rxe spell it where they have it. */
export type CounterName = keyof typeof COUNTERS;

/** All counters of the NIC, in the order of their slots. */
export const COUNTER_NAMES = Object.keys(COUNTERS) as CounterName[];

/** What each counter counts, for `--help` and documentation. */
export const COUNTER_TEXTS: Readonly<Record<CounterName, string>> = COUNTERS;

export const COUNTER = Object.fromEntries(COUNTER_NAMES.map((name, index) => [name, index])) as Readonly<
  Record<CounterName, number>
>;

export function counterSnapshot(values: Float64Array): Record<CounterName, number> {
  return Object.fromEntries(COUNTER_NAMES.map((name, index) => [name, values[index]])) as Record<CounterName, number>;
}
