const CONNECTED = /^(0x[0-9a-f]+)>(.+)\/(0x[0-9a-f]+)$/;
const QUEUE_PAIR = /^0x[0-9a-f]+$/;

export function connectionName(conn: string): string {
  const [, qpn, remote, remoteQpn] = CONNECTED.exec(conn) ?? [];
  if (qpn !== undefined) return `to ${remote} (QP ${qpn} → ${remoteQpn})`;
  return QUEUE_PAIR.test(conn) ? `QP ${conn}` : conn;
}
