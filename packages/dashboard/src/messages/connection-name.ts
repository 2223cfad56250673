/** Names of connections as people read them: in the events that the server writes, and on the page. */

/** `0x11>10.0.0.2/0x22`, as telemetry names a connected queue pair. */
const CONNECTED = /^(0x[0-9a-f]+)>(.+)\/(0x[0-9a-f]+)$/;
const QUEUE_PAIR = /^0x[0-9a-f]+$/;

/** `to 10.0.0.2 (QP 0x11 → 0x22)`; `QP 0x11` of one that is not connected; anything else as it is. */
export function connectionName(conn: string): string {
  const [, qpn, remote, remoteQpn] = CONNECTED.exec(conn) ?? [];
  if (qpn !== undefined) return `to ${remote} (QP ${qpn} → ${remoteQpn})`;
  return QUEUE_PAIR.test(conn) ? `QP ${conn}` : conn;
}
