import { setImmediate as nextTurn } from 'node:timers/promises';
import { leftAligned, type Output, rightAligned } from '@rocev2/command';
import { readTrace, type TraceRecord } from 'rocev2/internal/capture';
import { DECODE_DOCUMENT, DECODE_LINES } from './decode-lines.js';

const RECORDS_PER_TURN = 512;

interface TraceDecoding {
  readonly qpn: number | undefined;
  readonly limit: number | undefined;
  readonly onlyNews: boolean;
}

const PACKETS = ['roce:packet_sent', 'roce:packet_received'];

export async function decodeTrace(
  text: string,
  { qpn, limit, onlyNews }: TraceDecoding,
  output: Output,
): Promise<void> {
  const counts = new Map<string, number>();
  let shown = 0;
  let seen = 0;
  for (const record of readTrace(text)) {
    if (seen++ % RECORDS_PER_TURN === 0) {
      await output.drained();
      await nextTurn();
      if (output.io.interrupted.aborted) break;
    }
    const { name, data } = record;
    if (qpn !== undefined && data['dest_qpn'] !== qpn && data['qpn'] !== qpn) continue;
    counts.set(name, (counts.get(name) ?? 0) + 1);
    if (!onlyNews || !PACKETS.includes(name)) {
      output.line(eventLine(record, output));
      output.jsonLine(DECODE_LINES, { type: 'event', ...record });
    }
    if (++shown === limit) break;
  }
  output.line();
  output.table([...leftAligned('Event'), ...rightAligned('Times')], [...counts]);
  output.document(DECODE_DOCUMENT, { type: 'summary', events: Object.fromEntries(counts) });
}

function eventLine({ timeMs, name, data }: TraceRecord, { colors }: Output): string {
  const words = Object.entries(data).map(([field, value]) => `${field}=${fieldText(field, value)}`);
  const line = `${timeMs.toFixed(3).padStart(12)}  ${name.replace('roce:', '').padEnd(16)}  ${words.join(' ')}`;
  return PACKETS.includes(name) ? line : colors.yellow(line);
}

function fieldText(field: string, value: string | number | boolean): string {
  const isHex = typeof value === 'number' && /(qpn|psn)$/.test(field);
  return isHex ? value.toString(16).padStart(6, '0') : String(value);
}
