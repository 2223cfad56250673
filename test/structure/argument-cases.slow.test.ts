/** Each exported call has a case in a table of wrong arguments (`every-parameter.long.ts`), or a reason for none. */

import { readdirSync } from 'node:fs';
import { expect, it } from 'vitest';
import { exportedCalls } from './exported-calls.js';
import { PACKAGES, readFileSync } from './product-files.js';

/** Entry points whose calls need no table. */
const WITHOUT_CASES: Readonly<Record<string, string>> = {
  'rocev2/packet': 'reads and writes bytes on the packet path',
  'rocev2/engine-thread': 'is the program of a worker',
  '@rocev2/command': 'is for commands, which check their flags',
  '@rocev2/command/plot': 'is for pages and reports of this project',
  '@rocev2/command/schema': 'is for commands, which check their flags',
  '@rocev2/dashboard/parts': 'is for pages of this project',
  '@rocev2/page/scenes': 'is for pages of this project',
};

/** Calls that need no case. */
const REASONS: ReadonlyArray<readonly [calls: RegExp, reason: string]> = [
  [/^(?:\w*Error|\w+Rejected|DiskInUse)$/, 'the library makes errors'],
  [/^(?:SenderRecovery|ReceiverRecovery|GoBackN\w+|SelectiveRepeat\w+|PacketAccounts)\./, 'the engine calls recovery'],
  [/^(?:RateControl|RatePacer|NotificationPoint)\b/, 'the engine calls rate control'],
  [/^(?:Nagle|NoDelay)Policy\b/, 'links call release policies'],
  [/^Switch\./, 'a simulation or a driver calls the switch for each frame'],
  [/^(?:\w+Model|\w+Law)\./, 'the fluid simulation calls models'],
  [/^(?:Audit\.take|FaultPlan\.decide|IpAddress\.equals)$/, 'is called for each packet'],
  [/^FileDevice\.(?:verify|isUsed|readChecked)$|^StreamDisk\.readChecked$/, 'scrubbers and servers call it'],
];

const INTERFACES: Readonly<Record<string, string>> = { KvClient: 'Kv', KvOwner: 'Kv', KvShards: 'Kv' };
const DISK_CALLS = ['read', 'write', 'trim', 'writeZeroes', 'blockStatus', 'prefetch'];

function casesIn(text: string): string[] {
  const named = [...text.matchAll(/name: '([\w.]+)/g)].map(([, name]) => name);
  const disks = [...text.matchAll(/\bdiskCases\('(\w+)'/g)].map(([, name]) => name);
  return [...named, ...disks.flatMap((disk) => DISK_CALLS.map((call) => `${disk}.${call}`))];
}

function tables(): string[] {
  return ['test', ...PACKAGES.filter((folder) => folder !== '').map((folder) => `${folder}test`)].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('every-parameter.long.ts'))
      .map((name) => `${folder}/${name}`),
  );
}

/** The calls of each public entry point. */
function allCalls(): Map<string, string[]> {
  const calls = new Map<string, string[]>();
  for (const folder of PACKAGES) {
    const manifest = JSON.parse(readFileSync(`${folder}package.json`, 'utf8'));
    for (const [entry, target] of Object.entries<Record<string, string>>(manifest.exports)) {
      const source = target['@rocev2/source'];
      if (source === undefined || /internal|commands/.test(entry)) continue;
      calls.set(`${manifest.name}${entry.slice(1)}`, exportedCalls(`${folder}${source.slice(2)}`));
    }
  }
  return calls;
}

it('every exported call is tried with wrong arguments, or a reason is written down', () => {
  const tried = new Set(tables().flatMap((path) => casesIn(readFileSync(path, 'utf8'))));
  const calls = allCalls();
  expect([...calls.keys()]).toEqual(expect.arrayContaining(['rocev2', 'rocev2/storage', '@rocev2/kv', '@rocev2/nvme']));
  const isTried = (call: string) =>
    tried.has(call) || tried.has(call.replace(/^\w+/, (name) => INTERFACES[name] ?? name));
  const untried = [...calls].flatMap(([entry, names]) =>
    entry in WITHOUT_CASES ? [] : names.filter((call) => !isTried(call) && !REASONS.some(([of]) => of.test(call))),
  );
  expect(untried).toEqual([]);
});

it('finds functions, constructors and methods, and follows re-exports', () => {
  const calls = exportedCalls('packages/nvme/src/index.ts');
  expect(calls).toEqual(
    expect.arrayContaining(['openNvme', 'NvmeTargetServer.open', 'MemoryDevice', 'MemoryDevice.read']),
  );
  expect(calls).not.toContain('MemoryDevice.close');
  expect(exportedCalls('src/index.ts')).not.toContain('Connection.sendClaimed');
});
