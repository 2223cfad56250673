/**
 * The NIC's counters: one declared list, from which the shared array and the JSON output follow.
 * Names are those operators grep for (mlx5 and rxe `hw_counters`) where such a name exists.
 */

/** All counters of the NIC, in the order of their slots; counter-texts.ts says what each counts. */
export const COUNTER_NAMES = [
  'tx_packets',
  'tx_bytes',
  'rx_packets',
  'rx_bytes',
  'rx_socket_overruns',
  'rx_accepted',
  'rx_drop_parse',
  'rx_drop_no_qp',
  'rx_drop_qp_type',
  'rx_drop_qp_state',
  'rx_drop_address',
  'rx_drop_source_port',
  'rx_drop_pkey',
  'rx_drop_qkey',
  'rx_icrc_errors',
  'rx_icrc_id_solved',
  'np_ecn_marked_roce_packets',
  'np_cnp_sent',
  'rp_cnp_handled',
  'rp_cnp_ignored',
  'rp_cnp_suspicious',
  'rx_prio0_pause',
  'rx_prio1_pause',
  'rx_prio2_pause',
  'rx_prio3_pause',
  'rx_prio4_pause',
  'rx_prio5_pause',
  'rx_prio6_pause',
  'rx_prio7_pause',
  'rx_write_requests',
  'rx_read_requests',
  'rx_atomic_requests',
  'rx_send_messages',
  'out_of_sequence',
  'duplicate_request',
  'out_of_buffer',
  'packet_seq_err',
  'implied_nak_seq_err',
  'rnr_nak_received',
  'rnr_nak_retry_err',
  'local_ack_timeout_err',
  'retry_exceeded_err',
  'read_response_gaps',
  'req_remote_invalid_request',
  'req_remote_access_errors',
  'req_remote_operation_errors',
  'req_cqe_error',
  'resp_cqe_error',
  'resp_nak_sequence',
  'resp_nak_fatal',
  'tx_data_packets',
  'tx_ack_packets',
  'tx_retransmitted',
  'retry_rewinds',
  'retry_rewind_packets',
  'sack_sent',
  'rx_trimmed',
  'trim_nak_sent',
  'trim_nak_received',
  'reorder_stored',
  'reorder_dropped',
  'reorder_conflicts',
  'stale_response',
  'unsent_response',
  'uc_messages_dropped',
  'secure_tx_sealed',
  'secure_rx_opened',
  'secure_rekeys',
  'secure_drop_plain',
  'secure_drop_malformed',
  'secure_drop_unknown_spi',
  'secure_drop_address',
  'secure_drop_replayed',
  'secure_drop_forged',
  'secure_tx_drop_no_association',
  'secure_tx_drop_exhausted',
  'events_lost',
  'interrupts',
  'fault_dropped',
] as const;

/** Name of a counter of the NIC, as mlx5 and rxe spell it where they have it. */
export type CounterName = (typeof COUNTER_NAMES)[number];

export const COUNTER = Object.fromEntries(COUNTER_NAMES.map((name, index) => [name, index])) as Readonly<
  Record<CounterName, number>
>;

export function counterSnapshot(values: Float64Array): Record<CounterName, number> {
  return Object.fromEntries(COUNTER_NAMES.map((name, index) => [name, values[index]])) as Record<CounterName, number>;
}
