import { execFile } from 'node:child_process';
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CaptureCopy } from '../../../../src/port/capture/capture-copy.js';
import { CaptureReader } from '../../../../src/port/capture/capture-reader.js';
import type { CapturedPacket } from '../../../../src/port/capture/captured-packet.js';
import { isBuilt } from '../../../../test/e2e/executable.js';
import { documentOf } from '../../../../test/support/documents.js';
import { run } from '../../../cli/test/run-in-process.js';
import { Frame, golden, goldenPath } from './golden.js';

const SEND = 'send-rc-mtu1024-v4';
const SOUND = goldenPath(`${SEND}.pcapng`);

let folder: string;
/** MSN of packet 9, an ACK, is one too high: rule 40. */
let broken: string;
/** Reserved bits of packet 1 are set: rule 19, which is a should. */
let untidy: string;
/** The source address of each packet was changed, and no ICRC. */
let anonymous: string;

async function capture(name: string, packets: readonly CapturedPacket[]): Promise<string> {
  const path = join(folder, name);
  const copy = await CaptureCopy.create(path);
  for (const packet of packets) await copy.add(packet);
  await copy.close();
  return path;
}

/** As a host with offload captures them: two neighbouring packets of one length in one direction become one. */
function mergedPairs(packets: readonly CapturedPacket[]): CapturedPacket[] {
  const out: CapturedPacket[] = [];
  for (const packet of packets) {
    const before = out.at(-1);
    const frame = new Frame(Uint8Array.from(packet.bytes));
    const isNext =
      before !== undefined &&
      before.bytes.length === before.originalLength &&
      before.bytes.length >= packet.bytes.length &&
      before.bytes.length < 1200 &&
      before.bytes[29] === packet.bytes[29] &&
      [0, 1].includes(new Frame(before.bytes).opcode);
    if (!isNext) {
      frame.bytes[frame.ip + 4] = 0;
      frame.bytes[frame.ip + 5] = 7;
      out.push({ ...packet, bytes: frame.sealed() });
      continue;
    }
    frame.bytes[frame.ip + 4] = 0;
    frame.bytes[frame.ip + 5] = 8;
    const bytes = Uint8Array.of(...before.bytes, ...frame.sealed().subarray(frame.bth));
    const udpBytes = bytes.length - frame.udp;
    bytes.set([(udpBytes + 20) >> 8, udpBytes + 20], frame.ip + 2);
    bytes.set([udpBytes >> 8, udpBytes], frame.udp + 4);
    out[out.length - 1] = { ...before, bytes, originalLength: bytes.length };
  }
  return out;
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'rocev2-audit-'));
  const change = (edit: (frame: Frame, index: number) => Uint8Array) =>
    golden(SEND).map((packet, i) => ({ ...packet, bytes: edit(new Frame(packet.bytes), i) }));
  const acks = golden(SEND).flatMap(({ bytes }, i) => (new Frame(bytes).opcode === 0x11 ? [i] : []));
  broken = await capture(
    'broken.pcapng',
    change((frame, i) => {
      if (i === acks[4]) frame.bytes[frame.bth + 15]++;
      return frame.sealed();
    }),
  );
  untidy = await capture(
    'untidy.pcapng',
    change((frame, i) => {
      if (i === 0) frame.bytes[frame.bth + 8] |= 1;
      return frame.sealed();
    }),
  );
  anonymous = await capture(
    'anonymous.pcapng',
    change((frame) => {
      frame.bytes[frame.ip + 13] = 99;
      frame.bytes[frame.ip + 17] = 99;
      return frame.bytes;
    }),
  );
});
afterAll(() => rmSync(folder, { recursive: true }));

const file = (name: string) => join(folder, name);

describe('rocev2 audit', () => {
  it('a sound capture ends with 0, and a document that follows its schema', async () => {
    const { exitCode, stdout } = await run(['audit', SOUND]);
    expect(exitCode).toBe(0);
    expect(stdout).toContain('25 RoCEv2 packets in 2 flows, 1 connection with both directions.');
    const json = await run(['audit', SOUND, '--json']);
    expect(documentOf('audit', json.stdout)).toMatchObject({ file: SOUND, connections: 1, findings: [] });
  });

  it('a broken rule of level must ends with 4, and is told in a sentence', async () => {
    const { exitCode, stdout, stderr } = await run(['audit', broken]);
    expect(exitCode).toBe(4);
    expect(stderr).toBe('rocev2: 1 rule broken: 40\n');
    expect(stdout).toMatch(
      /Rule 40 broken 1 time \(must; 9\.7\.7\): The MSN counts completed messages\.\n {2}packet \d+, 10\.77\.0\.3 -> 10\.77\.0\.2 QP 0x\w{6}: the MSN is \d+; the messages up to PSN \w{6} make it \d+\n/,
    );
    expect((await run(['audit', broken, '--rules', '1-39,41-111'])).exitCode).toBe(0);
    expect((await run(['audit', broken, '--rules', '40'])).exitCode).toBe(4);
  });

  it('a broken rule of level should counts with --strict', async () => {
    expect((await run(['audit', untidy])).exitCode).toBe(0);
    expect((await run(['audit', untidy, '--strict'])).exitCode).toBe(4);
  });

  it('--explain tells the rule, and with a file what happened around it', async () => {
    const alone = await run(['audit', '--explain', '40']);
    expect(alone).toMatchObject({ exitCode: 0, stderr: '' });
    expect(alone.stdout).toContain('Rule 40 (must): The MSN counts completed messages.\nSource: 9.7.7\n');
    const told = await run(['audit', broken, '--explain', '40']);
    expect(told.exitCode).toBe(4);
    const marked = told.stdout.split('\n').filter((line) => line.startsWith('>'));
    expect(marked).toHaveLength(1);
    expect(marked[0]).toContain('ACKNOWLEDGE');
    expect((await run(['audit', '--explain', '12'])).stdout).toContain(
      'Audit does not check it: needs a peer that sends one.',
    );
  });

  it('--sarif, --junit and --annotate write what was found', async () => {
    const [sarif, junit, annotated] = ['found.sarif', 'found.xml', 'found.pcapng'].map(file);
    await run(['audit', broken, '--sarif', sarif, '--junit', junit, '--annotate', annotated]);
    const [result] = JSON.parse(readFileSync(sarif, 'utf8')).runs[0].results;
    expect(result).toMatchObject({ ruleId: 'ROCE040', level: 'error' });
    const xml = readFileSync(junit, 'utf8');
    expect(xml).toContain('<testsuites tests="52" failures="1"');
    expect(xml).toContain('<failure type="must" message="The MSN counts completed messages.">packets ');
    const comments = [...new CaptureReader(readFileSync(annotated))].flatMap(({ comment }, i) =>
      comment ? [[i + 1, comment]] : [],
    );
    expect(comments).toEqual([
      [result.properties.packets[0], expect.stringMatching(/^rule 40, violation: the MSN is/)],
    ]);
  });

  it('--fix-icrc repairs ICRCs, and nothing else', async () => {
    expect((await run(['audit', anonymous, '--rules', '11'])).exitCode).toBe(4);
    const fixed = file('fixed.pcapng');
    const { exitCode, stdout } = await run(['audit', anonymous, '--fix-icrc', fixed]);
    expect([exitCode, stdout]).toEqual([0, `${fixed} has 25 packets; 25 ICRCs repaired.\n`]);
    expect((await run(['audit', fixed])).exitCode).toBe(0);
    expect((await run(['audit', SOUND, '--fix-icrc', file('same.pcapng')])).stdout).toContain('0 ICRCs repaired');
  });

  it.each(['--annotate', '--fix-icrc', '--sarif', '--junit'])(
    '%s never replaces the capture itself',
    async (option) => {
      const [own, link] = [file('own.pcapng'), file(`link${option}.pcapng`)];
      copyFileSync(SOUND, own);
      symlinkSync(own, link);
      for (const to of [own, link]) {
        const { exitCode, stderr } = await run(['audit', own, option, to]);
        expect([exitCode, stderr]).toEqual([2, expect.stringContaining(`${to} is the file that is read`)]);
      }
      expect(readFileSync(own)).toEqual(readFileSync(SOUND));
    },
  );

  it('a capture that is cut inside the headers is too short, and accuses nobody', async () => {
    for (const [bytes, text] of [
      [14, 'packets are captured too short'],
      [34, 'packets are captured too short'],
      [50, undefined],
    ] as const) {
      const shortened = golden(SEND).map((packet) => ({ ...packet, bytes: packet.bytes.subarray(0, bytes) }));
      const to = await capture(`cut-${bytes}.pcapng`, shortened);
      const { exitCode, stdout, stderr } = await run(['audit', to]);
      expect(exitCode).toBe(text === undefined ? 0 : 1);
      if (text !== undefined) expect(stderr).toContain(text);
      expect(stdout).toContain('25 captured too short');
    }
  });

  it('a capture without RoCEv2 fails: it would pass every audit', async () => {
    const { exitCode, stderr } = await run(['audit', SOUND, '--udp-port', '5000']);
    const why = '25 packets with a correct ICRC go to UDP port 4791: use --udp-port 4791';
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining(why)]);
    expect((await run(['audit', SOUND, '--udp-port', '5000,4791'])).exitCode).toBe(0);
  });

  it('a file with other packets fails, and names each reason', async () => {
    const sound = golden(SEND);
    const behind =
      (...header: number[]) =>
      (packet: CapturedPacket) => ({
        ...packet,
        bytes: Uint8Array.of(...packet.bytes.subarray(0, 12), ...header, ...packet.bytes.subarray(14)),
      });
    const files = [
      [sound.map(behind(0x89, 0x15)), /25 packets are RoCE v1 \(EtherType 0x8915\)/],
      [sound.map(behind(0x81, 0, 0, 5, 0x89, 0x15)), /25 packets are RoCE v1/],
      [sound.map(behind(0x88, 0x47)), /25 packets are in tunnels or encrypted/],
      [sound.map((packet) => ({ ...packet, linkType: 147 })), /25 packets are of link type 147/],
    ] as const;
    for (const [i, [packets, why]] of files.entries()) {
      const path = await capture(`other-${i}.pcapng`, packets);
      for (const command of ['audit', 'decode']) {
        const { exitCode, stderr } = await run([command, path]);
        expect([exitCode, stderr]).toEqual([1, expect.stringMatching(why)]);
      }
    }
    const mixed = await capture('mixed.pcapng', [...sound, ...sound.slice(0, 1).map(behind(0x89, 0x15))]);
    expect(await run(['decode', mixed])).toMatchObject({ exitCode: 0, stderr: expect.stringContaining('RoCE v1') });
    expect((await run(['audit', mixed])).stdout).toContain('1 other packet left out, 1 of them RoCE v1');
  });

  it('packets that segmentation offload has merged are judged one by one', async () => {
    const train = await capture('train.pcapng', mergedPairs(golden(SEND)));
    const single = await run(['audit', SOUND]);
    const { exitCode, stdout } = await run(['audit', train]);
    expect(exitCode).toBe(0);
    const rulesIn = (text: string) => text.split('\n').filter((line) => / (must|should) {2}/.test(line));
    expect(rulesIn(stdout)).toEqual(rulesIn(single.stdout));
    expect(stdout).toMatch(
      /25 RoCEv2 packets .*, \d packets of the file with several that segmentation offload has merged/,
    );
    const fixed = file('train-fixed.pcapng');
    expect((await run(['audit', train, '--fix-icrc', fixed])).stdout).toContain('25 packets; 0 ICRCs repaired');
    expect((await run(['audit', fixed])).exitCode).toBe(0);
    const decoded = await run(['decode', train]);
    expect(decoded.stdout).toContain('25 RoCEv2 packets');
    expect(decoded.stdout).not.toContain('BAD');
  });

  it('mistakes are told, and nothing is lost', async () => {
    expect(await run(['audit'])).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('name a capture file') });
    expect((await run(['audit', file('nowhere')])).stderr).toContain('there is no such file');
    expect((await run(['audit', 'README.md'])).stderr).toContain('cannot read README.md: not a pcapng or pcap file');
    expect(await run(['audit', SOUND, '--rules', '4'])).toMatchObject({ exitCode: 2 });
    expect((await run(['audit', SOUND, '--rules', '0-5'])).stderr).toContain("'0-5' is not a rule or range of rules");
    expect((await run(['audit', SOUND, '--sarif', file('no/folder')])).exitCode).toBe(1);
    const cut = file('cut.pcapng');
    writeFileSync(cut, readFileSync(SOUND).subarray(0, 2000));
    expect(await run(['audit', cut])).toMatchObject({
      exitCode: 1,
      stdout: expect.stringContaining('RoCEv2 packets'),
      stderr: expect.stringContaining('is damaged at byte'),
    });
    const interrupt = new AbortController();
    interrupt.abort();
    expect((await run(['audit', SOUND], { interrupted: interrupt.signal })).exitCode).toBe(0); // shorter than a look
  });

  it.each(['--fix-icrc', '--annotate'])(
    'an interrupted %s leaves no part of a copy, nor an empty file',
    async (option) => {
      const few = golden(SEND);
      const long = await capture(
        'long.pcapng',
        Array.from({ length: 5000 }, (_unused, i) => few[i % few.length]),
      );
      const interrupt = new AbortController();
      interrupt.abort();
      const { exitCode } = await run(['audit', long, option, file('copy.pcapng')], { interrupted: interrupt.signal });
      expect({ exitCode, isLeft: existsSync(file('copy.pcapng')) }).toEqual({ exitCode: 130, isLeft: false });
    },
  );
});

describe('rocev2 icrc', () => {
  const HEX =
    '45000034123440004011a481c0000201c0000202c00012b700200000' + '0430ffff000000118012345668656c6c6f000000a18a5a39';
  const words = HEX.match(/.{4}/g)!;

  it('takes plain digits, tcpdump, xxd and hexdump', async () => {
    const rows = (size: number) =>
      Array.from({ length: Math.ceil(words.length / size) }, (_unused, i) => words.slice(size * i, size * (i + 1)));
    const offset = (i: number, digits: number) => (16 * i).toString(16).padStart(digits, '0');
    const tcpdump = ['12:00:00.1 IP a > b: UDP', ...rows(8).map((row, i) => `\t0x${offset(i, 4)}:  ${row.join(' ')}`)];
    const xxd = rows(8).map((row, i) => `${offset(i, 8)}: ${row.join(' ')}  E..4.4@.@...abcd`);
    const hexdump = rows(8).map((row, i) => `${offset(i, 8)}  ${row.join('').match(/../g)!.join(' ')}  |E..4.4@.|`);
    for (const text of [HEX, words.join(' '), tcpdump.join('\n'), xxd.join('\n'), hexdump.join('\n')]) {
      const { exitCode, stdout } = await run(['icrc', text]);
      expect([text, exitCode, stdout]).toEqual([text, 0, 'computed  a18a5a39\ncarried   a18a5a39  right\n']);
    }
    expect((await run(['icrc', `${'02'.repeat(12)}0800${HEX}`])).exitCode).toBe(0);
  });

  it('ends with 4 when the packet has another', async () => {
    const { exitCode, stdout } = await run(['icrc', HEX.replace(/a18a5a39$/, '00000000'), '--json']);
    expect(exitCode).toBe(4);
    const expected = { computed: 'a18a5a39', carried: '00000000', isRight: false };
    expect(documentOf('icrc', stdout)).toMatchObject(expected);
  });

  it('says what it needs', async () => {
    expect((await run(['icrc', 'hello'])).stderr).toContain('two hex digits a byte');
    expect((await run(['icrc', '4500'])).stderr).toContain('give all bytes from the IP header to the ICRC');
  });
});

describe('rocev2 info', () => {
  it('prints addresses and abilities, and a document that follows its schema', async () => {
    const { exitCode, stdout } = await run(['info']);
    expect(exitCode).toBe(0);
    expect(stdout).toContain('UDP port 4791 over IPv4');
    const document = documentOf('info', (await run(['info', '--json'])).stdout);
    const addresses = document['addresses'] as Array<Record<string, unknown>>;
    expect(addresses.map(({ address }) => address)).toContain('127.0.0.1');
    expect(addresses.find(({ address }) => address === '127.0.0.1')?.['gid']).toBe('00000000000000000000ffff7f000001');
  });
});

it.runIf(isBuilt)('- is standard input, also where the file is read twice', async () => {
  const script = `cat ${SOUND} | node packages/cli/bin/rocev2.js "$@"`;
  const through = (...args: string[]) => promisify(execFile)('sh', ['-c', script, 'sh', ...args]);
  const [audited, decoded, annotated] = await Promise.all([
    through('audit', '-', '--json'),
    through('decode', '-'),
    through('audit', '-', '--annotate', file('from-stdin.pcapng')),
  ]);
  expect(JSON.parse(audited.stdout)).toMatchObject({ file: '-', connections: 1, findings: [] });
  expect(decoded.stdout).toContain('25 RoCEv2 packets');
  expect(annotated.stdout).toContain('from-stdin.pcapng has the capture');
});

it.runIf(isBuilt)('packages/inspect/docs/rules.md is what the catalogue says', async () => {
  await promisify(execFile)(process.execPath, ['scripts/conformance-doc.js', '--check']);
});
