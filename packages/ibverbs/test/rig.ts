/** NICs of this process, and programs that use them. */

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { libC } from '../../../src/dgram-ext/libc.js';
import { eventually } from '../../../test/support/eventually.js';
import { freePort } from '../../../test/support/free-port.js';
import { shimLibrary } from '../src/library.js';
import { NicServer } from '../src/nic-server.js';

export function succeeds(command: string, ...args: readonly string[]): boolean {
  try {
    execFileSync(command, args, { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** Whether something listens on a TCP port of any address; a connection would be taken for a client. */
export function listens(port: number): boolean {
  const hex = port.toString(16).toUpperCase().padStart(4, '0');
  const tables = ['/proc/net/tcp', '/proc/net/tcp6'].map((path) => readFileSync(path, 'utf8'));
  return tables.some((text) => new RegExp(`:${hex} [0-9A-F]+:0000 0A `).test(text));
}

export const PYTHON = '/usr/bin/python3';

export function isInstalled(program: string): boolean {
  return succeeds('sh', '-c', `command -v ${program}`);
}

/** What tests with stock programs need and is not there: koffi, a compiler, these programs, `pyverbs`. Says so, once. */
export function missing(...names: readonly string[]): readonly string[] {
  const isThere = (name: string) => {
    if (name === 'koffi') return typeof libC() !== 'string';
    return name === 'pyverbs' ? succeeds(PYTHON, '-c', 'import pyverbs.device') : isInstalled(name);
  };
  const absent = ['koffi', 'cc', ...names].filter((name) => !isThere(name));
  if (absent.length > 0) console.log(`skipped: ${absent.join(', ')} not installed`);
  return absent;
}

type NicOptions = Parameters<typeof NicServer.open>[1];

export class Rig {
  readonly folder = mkdtempSync(join(tmpdir(), 'rocev2-verbs-test-'));
  readonly #children: ChildProcess[] = [];
  readonly #nics = new Map<string, NicServer>();
  #library = '';

  /** Compiles the library, and starts a NIC on each address. */
  static async open(...nics: ReadonlyArray<string | NicOptions>): Promise<Rig> {
    const rig = new Rig();
    rig.#library = await shimLibrary({ ...process.env, XDG_CACHE_HOME: rig.folder });
    for (const nic of nics) await rig.startNic(nic);
    return rig;
  }

  async startNic(nic: string | NicOptions): Promise<void> {
    const options = typeof nic === 'string' ? { address: nic } : nic;
    const { address } = options;
    this.#nics.set(address, await NicServer.open(this.#socket(address), options));
  }

  nic(address: string): NicServer {
    return this.#nics.get(address)!;
  }

  #socket(address: string): string {
    return join(this.folder, `${address}.sock`);
  }

  start(address: string, command: string, ...args: readonly string[]) {
    const env = { ...process.env, LD_PRELOAD: this.#library, ROCEV2_VERBS_SOCKETS: this.#socket(address) };
    const child = spawn(command, args, { env, stdio: ['pipe', 'pipe', 'pipe'] });
    this.#children.push(child);
    let text = '';
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (more) => (text += more));
    const ended = once(child, 'close').then(([code]) => ({ code, text }));
    const said = (line: string) => eventually(() => text.includes(line) || child.exitCode !== null);
    return { child, ended, said };
  }

  /** Runs both ends of a program that exchanges its parameters over TCP to their end. Returns the client's output. */
  async pair(server: string, client: string, command: string, ...args: readonly string[]): Promise<string> {
    const port = await freePort();
    const common = [...args, '-p', String(port)];
    const first = this.start(server, command, ...common);
    await eventually(() => listens(port) || first.child.exitCode !== null);
    const second = this.start(client, command, ...common, '127.0.0.1');
    const [a, b] = await Promise.all([first.ended, second.ended]);
    expect(`${a.text}${b.text}`).not.toMatch(/error|fail|invalid data/i);
    expect([a.code, b.code], b.text).toEqual([0, 0]);
    return b.text;
  }

  /**
   * Runs both ends of programs that connect by librdmacm to their end: the client finds the server by the address of
   * its NIC. Returns their output.
   */
  async connected(server: string, serverLine: string, client: string, clientLine: string): Promise<readonly string[]> {
    const nic = this.nic(server);
    const [command, ...args] = serverLine.split(' ');
    const first = this.start(server, command, ...args);
    await eventually(() => nic.listeners > 0 || first.child.exitCode !== null);
    const [clientCommand, ...clientArgs] = clientLine.split(' ');
    const second = this.start(client, clientCommand, ...clientArgs);
    const ends = await Promise.all([first.ended, second.ended]);
    const texts = ends.map(({ text }) => text);
    expect(
      ends.map(({ code }) => code),
      texts.join('\n'),
    ).toEqual([0, 0]);
    expect(nic.listeners).toBe(0);
    return texts;
  }

  /** Ends all programs, and waits until the NICs have freed what they had. */
  async endPrograms(): Promise<void> {
    for (const child of this.#children.splice(0)) child.kill('SIGKILL');
    await eventually(() => [...this.#nics.values()].every(({ programs }) => programs === 0));
  }

  async close(): Promise<void> {
    for (const nic of this.#nics.values()) await nic.close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
