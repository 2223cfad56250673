import { addressOption, endingInTime, type Output, resolveHost } from '@rocev2/command';
import type { Command } from 'commander';
import { dialFixed, type FixedChannel, FixedListener } from 'rocev2/internal/cm';
import type { IpAddress } from 'rocev2/internal/packet';
import { PINGPONG_FIRST_MESSAGE, type PingpongDestination } from 'rocev2/internal/stock-exchanges';

/** The fields of `rping --json`, and with `transport` those of `pingpong --json`. */
export interface PingResult {
  /** Role of this side. */
  readonly role: 'client' | 'server';
  /** IP address of the peer. */
  readonly peer: string;
  /** Number of pings, or of messages each way. */
  readonly iterations: number;
  /** Size of a ping or message in bytes. */
  readonly sizeBytes: number;
  /** Time from the first to the last. */
  readonly seconds: number;
  /** Whether the contents were checked and correct. False if nothing was checked. */
  readonly verified: boolean;
}

export interface PingpongFlags {
  readonly port: number;
  readonly size: number;
  readonly iters: number;
  readonly bind?: IpAddress;
  readonly chk?: boolean;
}

/** The options behind those of the traffic. */
export function addPingpongFlags(command: Command): Command {
  return command
    .option('--bind <address>', 'RoCE address of this side (default: the address of the TCP connection)', addressOption)
    .option('-c, --chk', 'check the contents of every message')
    .option('--json', 'print one JSON document');
}

/** The TCP connection to the client that comes to us, or to the server `host`. */
export async function meetPingpongPeer(host: string | undefined, port: number, output: Output): Promise<FixedChannel> {
  const { interrupted } = output.io;
  const meeting =
    host === undefined
      ? acceptPingpongClient(port, output)
      : resolveHost(host).then((address) => dialFixed(address, port));
  const channel = await endingInTime(meeting, interrupted);
  interrupted.addEventListener('abort', () => channel.abort());
  return channel;
}

interface Played {
  readonly host: string | undefined;
  readonly peer: IpAddress;
  readonly seconds: number;
  readonly faults: number;
}

/** Prints the pace, and returns the fields that the documents share. */
export function reportPings(
  { size: sizeBytes, iters: iterations, chk }: PingpongFlags,
  { host, peer, seconds, faults }: Played,
  output: Output,
): PingResult {
  printPace(output, { sizeBytes, iterations, seconds });
  const role = host === undefined ? 'server' : 'client';
  return { role, peer: peer.text, iterations, sizeBytes, seconds, verified: chk === true && faults === 0 };
}

const FILL = 0x7b;
const PAGE_BYTES = 4096;
const PAGE_MARK = 0;

export function fillMessage(message: Uint8Array, check: boolean): void {
  message.fill(FILL);
  if (check) for (let at = 0; at < message.length; at += PAGE_BYTES) message[at] = PAGE_MARK;
}

async function acceptPingpongClient(port: number, output: Output): Promise<FixedChannel> {
  const listener = await FixedListener.open(port, {
    firstMessage: PINGPONG_FIRST_MESSAGE,
    onRefusedPeer: (peer, { message }) => output.note(`${peer} was not the client: ${message}`),
  });
  output.note(`waiting for a client on port ${port}`);
  try {
    return await listener.accept(output.io.interrupted);
  } catch (error) {
    output.throwIfInterrupted();
    throw error;
  } finally {
    listener.close();
  }
}

export function describeDestination({ qpn, psn, address }: PingpongDestination): string {
  const hex6 = (value: number) => `0x${value.toString(16).padStart(6, '0')}`;
  const gid = address.family === 4 ? `::ffff:${address}` : address.text;
  return `LID 0x0000, QPN ${hex6(qpn)}, PSN ${hex6(psn)}, GID ${gid}`;
}

function printPace(
  output: Output,
  { sizeBytes, iterations, seconds }: { sizeBytes: number; iterations: number; seconds: number },
): void {
  const bytes = 2 * sizeBytes * iterations;
  const megabits = ((bytes * 8) / seconds / 1e6).toFixed(2);
  output.line(`${bytes} bytes in ${seconds.toFixed(2)} seconds = ${megabits} Mbit/sec`);
  const each = ((seconds * 1e6) / iterations).toFixed(2);
  output.line(`${iterations} iters in ${seconds.toFixed(2)} seconds = ${each} usec/iter`);
}
