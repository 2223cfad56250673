// @ts-check
/**
 * Packets a second that `rocev2 audit` judges, and the memory it takes: a capture of WRITEs of four packets on several queue pairs, each acknowledged, is
 * written and then audited by a process of its own.
 *
 *   node bench/audit.js [--packets 1000000] [--payload 1024] [--connections 8] [--reps 3] [--json]
 */

import { spawnSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, statSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Audit } from '../build/packages/inspect/src/audit/audit.js';
import { CaptureStream } from '../build/src/port/capture/capture-stream.js';
import {
  enhancedPacketBytes,
  interfaceDescriptionBlock,
  LINKTYPE_RAW,
  sectionHeaderBlock,
  writeEnhancedPacket,
} from '../build/src/port/capture/pcapng-blocks.js';
import { chooseCrc32 } from '../build/src/driver/crc32/crc32-choice.js';
import { IpAddress } from '../build/src/packet/address.js';
import { IcrcFlow, sealIcrc } from '../build/src/packet/icrc.js';
import { IP_PROTOCOL_UDP, writeIpv4 } from '../build/src/packet/ipv4.js';
import * as op from '../build/src/packet/opcode.js';
import { emitRoce, ICRC_BYTES } from '../build/src/packet/roce.js';
import { UDP_BYTES, writeUdp } from '../build/src/packet/udp.js';

const { values } = parseArgs({
  options: {
    packets: { type: 'string', default: '1000000' },
    payload: { type: 'string', default: '1024' },
    connections: { type: 'string', default: '8' },
    reps: { type: 'string', default: '3' },
    json: { type: 'boolean', default: false },
    audit: { type: 'string' },
  },
});

const CLIENT = IpAddress.parse('192.0.2.1');
const SERVER = IpAddress.parse('192.0.2.2');
const ROCE_PORT = 4791;
const STEP_NS = 1000n;
/** Between the start PSNs of two connections: audit tells them apart by PSNs, for there is no RDMA CM in the capture. */
const START_STEP = 0x10007;
const WRITE = [op.RC_WRITE_FIRST, op.RC_WRITE_MIDDLE, op.RC_WRITE_MIDDLE, op.RC_WRITE_LAST];
const BUFFER_BYTES = 8 * 1024 * 1024;

/** Writes the capture. @param {string} path @param {{ packets: number, payloadBytes: number, connections: number }} size */
function generate(path, { packets, payloadBytes, connections }) {
  const file = openSync(path, 'w');
  const out = new DataView(new ArrayBuffer(BUFFER_BYTES));
  const datagram = new Uint8Array(payloadBytes + 256);
  const payload = new Uint8Array(payloadBytes).map((_, i) => i);
  let used = 0;
  let written = 0;
  const ipIds = [0, 0];
  const flush = () => {
    writeSync(file, new Uint8Array(out.buffer, 0, used));
    used = 0;
  };
  /** @param {boolean} back @param {number} port @param {import('../dist/packet/roce.js').RoceFields} fields @param {Uint8Array} data */
  const add = (back, port, fields, data) => {
    const roce = emitRoce(fields, data);
    const bytes = roce.length + ICRC_BYTES;
    const [from, to] = back ? [SERVER, CLIENT] : [CLIENT, SERVER];
    const ipId = (ipIds[Number(back)] + 1) & 0xffff;
    ipIds[Number(back)] = ipId;
    const udp = writeIpv4(datagram, 0, from.bytes, to.bytes, IP_PROTOCOL_UDP, 0, 64, ipId, UDP_BYTES + bytes);
    const start = writeUdp(datagram, udp, port, ROCE_PORT, bytes);
    datagram.set(roce, start);
    sealIcrc(new IcrcFlow(from, to, port, ROCE_PORT), datagram, start, bytes, ipId, undefined);
    const packet = datagram.subarray(0, start + bytes);
    if (used + enhancedPacketBytes(packet.length, undefined) > BUFFER_BYTES) flush();
    const timestampNs = 1_700_000_000_000_000_000n + BigInt(written++) * STEP_NS;
    used = writeEnhancedPacket(out, used, { interfaceId: 0, timestampNs, packet, comment: undefined });
  };
  writeSync(file, sectionHeaderBlock('bench/audit.js'));
  writeSync(file, interfaceDescriptionBlock({ name: 'bench', linkType: LINKTYPE_RAW }));
  const none = new Uint8Array(0);
  for (let message = 0; written < packets; message++) {
    const connection = message % connections;
    const [clientQpn, serverQpn, port] = [0x1000 + connection, 0x2000 + connection, 49152 + connection];
    const turn = Math.floor(message / connections);
    for (const [i, opcode] of WRITE.entries()) {
      const isLast = i === WRITE.length - 1;
      const psn = (connection * START_STEP + turn * WRITE.length + i) & 0xffffff;
      const reth = { vaLow: 0x10000, rkey: 7, dmaLength: payloadBytes * WRITE.length };
      add(
        false,
        port,
        { opcode, destQpn: serverQpn, migReq: true, psn, ackReq: isLast, ...(i === 0 && reth) },
        payload,
      );
      if (!isLast) continue;
      const answer = {
        opcode: op.RC_ACK,
        destQpn: clientQpn,
        migReq: true,
        psn,
        syndrome: 0x1f,
        msn: (turn + 1) & 0xffffff,
      };
      add(true, port, answer, none);
    }
  }
  flush();
  closeSync(file);
}

/** In the process that is measured. @param {string} path */
async function audit(path) {
  chooseCrc32();
  const judge = new Audit();
  const startNs = process.hrtime.bigint();
  for await (const chunk of (await CaptureStream.open(path)).chunks()) for (const packet of chunk) judge.take(packet);
  const report = judge.report();
  const seconds = Number(process.hrtime.bigint() - startNs) / 1e9;
  const { userCPUTime, systemCPUTime, maxRSS } = process.resourceUsage();
  const broken = report.rules.filter(({ verdict }) => verdict === 'violation').map(({ rule }) => rule);
  process.stdout.write(
    JSON.stringify({
      packets: report.packets.roce,
      connections: report.connections,
      broken,
      seconds,
      processorSeconds: (userCPUTime + systemCPUTime) / 1e6,
      peakRssMiB: maxRSS / 1024,
    }),
  );
}

function main() {
  const folder = mkdtempSync(join(tmpdir(), 'rocev2-audit-'));
  try {
    const path = join(folder, 'bench.pcapng');
    generate(path, {
      packets: Number(values.packets),
      payloadBytes: Number(values.payload),
      connections: Number(values.connections),
    });
    const runs = Array.from({ length: Number(values.reps) }, () => {
      const child = spawnSync(process.execPath, [fileURLToPath(import.meta.url), '--audit', path], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      return JSON.parse(child.stdout.toString());
    }).toSorted((a, b) => a.seconds - b.seconds);
    const megabytes = statSync(path).size / 1e6;
    const median = runs[runs.length >>> 1];
    const rate = median.packets / median.seconds;
    if (values.json) process.stdout.write(`${JSON.stringify({ megabytes, rate, ...median })}\n`);
    else {
      process.stdout.write(
        `${median.packets} packets, ${megabytes.toFixed(0)} MB, ${median.connections} connections, rules broken: ${median.broken.length}\n` +
          `${median.seconds.toFixed(2)} s (processor ${median.processorSeconds.toFixed(2)} s): ${(rate / 1e6).toFixed(2)} million packets/s, ` +
          `${(megabytes / median.seconds).toFixed(0)} MB/s; peak RSS ${median.peakRssMiB.toFixed(0)} MiB\n`,
      );
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
}

if (values.audit !== undefined) await audit(values.audit);
else main();
