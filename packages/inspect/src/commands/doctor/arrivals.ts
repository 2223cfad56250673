/** What a capture of a doctor test shows of the return path: traffic classes as they arrived, and rule violations. */

import { CaptureStream, PacketView, SEEN } from 'rocev2/internal/capture';
import { readU24 } from 'rocev2/internal/core';
import { CNP, ECN_CE, type IpAddress, UDP_BYTES } from 'rocev2/internal/packet';
import { Audit, type AuditReport } from '../../audit/audit.js';

const GSI_QPN = 1;

export interface ArrivedClasses {
  readonly dscps: Readonly<Record<number, number>>;
  readonly ecns: readonly [number, number, number, number];
}

export interface CapturedArrivals {
  readonly management: ArrivedClasses;
  readonly connections: ArrivedClasses;
  readonly marksSent: number;
  readonly cnps: number;
  readonly audit: AuditReport;
}

export async function readArrivals(path: string, local: IpAddress, remote: IpAddress): Promise<CapturedArrivals> {
  const audit = new Audit({ capturedAt: local.text });
  const seen = new PacketView();
  const management = emptyClasses();
  const connections = emptyClasses();
  let cnps = 0;
  let marksSent = 0;
  const stream = await CaptureStream.open(path);
  for await (const chunk of stream.chunks()) {
    for (const captured of chunk) {
      audit.take(captured);
      if (seen.read(captured, 0, 0) !== SEEN.UDP || seen.isCut) continue;
      if (isFrom(seen, local) && seen.ecn === ECN_CE) marksSent++;
      if (!isFrom(seen, remote)) continue;
      const bth = seen.udp + UDP_BYTES;
      if (seen.bytes[bth] === CNP) cnps++;
      else {
        const classes = readU24(seen.bytes, bth + 5) === GSI_QPN ? management : connections;
        classes.dscps[seen.dscp] = (classes.dscps[seen.dscp] ?? 0) + 1;
        classes.ecns[seen.ecn]++;
      }
    }
  }
  return { management, connections, marksSent, cnps, audit: audit.report() };
}

function isFrom({ bytes, ip, family }: PacketView, address: IpAddress): boolean {
  const [at, length] = family === 4 ? [ip + 12, 4] : [ip + 8, 16];
  return address.family === family && address.bytes.every((byte, i) => i >= length || bytes[at + i] === byte);
}

function emptyClasses() {
  const dscps: Record<number, number> = {};
  const ecns: [number, number, number, number] = [0, 0, 0, 0];
  return { dscps, ecns };
}
