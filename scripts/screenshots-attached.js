// Makes the pictures of packages/dashboard/docs/dashboard.md of running programs: npm run build && node scripts/screenshots-attached.js
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { openBackend } from '../build/src/storage-rpc/index.js';
import { dashboard, end, finish, runtime, said, shoot, start } from './dashboard-pages.js';

/** Writes and reads on the disk of an NBD export until the signal. */
async function useDisk(uri, signal) {
  const disk = await openBackend(uri, undefined);
  const bytes = Buffer.alloc(65_536, 1);
  for (let i = 0; !signal.aborted; i++) {
    await disk.write((i % 800) * bytes.length, bytes);
    await disk.read((i % 700) * bytes.length, 4096, bytes);
    if (i % 50 === 0) await disk.flush();
    await delay(2);
  }
  await disk.close();
}

const TWO_LINKS = ['--port', 'a=127.61.2.3:5001', '--port', 'b=127.61.2.3:5002', '--rate', '200Mbps'];
const socket = join(runtime, 'disk.sock');
const programs = [
  start('switch', ...TWO_LINKS, '--ecn', '20KB,120KB,0.2', '--loss', 'random=0.0002', '--estats'),
  start('disk', 'serve', '--backend', 'memory', '--size', '64MiB', '--bind', '127.61.2.1', '-p', '18562', '--estats'),
];
await Promise.all([said(programs[0], /127\.61\.2\.3:5002/), said(programs[1], /serving/)]);
programs.push(
  start('bw', 'write', '--frame', '127.61.2.3:5001,1Gbps', '--bind', '10.0.0.1', '-p', '18572', '--estats'),
  start(
    'disk',
    'nbd',
    '--connect',
    '127.61.2.1',
    '-p',
    '18562',
    '--bind',
    '127.61.2.2',
    '--listen',
    `unix:${socket}`,
    '--estats',
  ),
);
await Promise.all([said(programs[2], /waiting for/), said(programs[3], /serving/)]);
const sender = [
  '--frame',
  '127.61.2.3:5002,1Gbps',
  '--bind',
  '10.0.0.2',
  '-p',
  '18572',
  '-q',
  '2',
  '-t',
  '4',
  '-D',
  '600s',
];
programs.push(start('bw', 'write', '127.0.0.1', ...sender, '--cc', 'dcqcn', '--rate', '300Mbps', '--estats'));
const stop = new AbortController();
const io = useDisk(`nbd+unix:///disk0?socket=${socket}`, stop.signal);
const chooseProgram = (page, kind, place) =>
  page.locator('.programs li', { hasText: kind }).filter({ hasText: place }).click();
await dashboard(['--attach'], 'light', async (page) => {
  await delay(30_000);
  await chooseProgram(page, 'endpoint', 'on 10.0.0.2');
  await delay(2000);
  await shoot(page, 'dashboard-attached-endpoint');
  await chooseProgram(page, 'switch', 'on');
  await delay(2000);
  await shoot(page, 'dashboard-attached-switch');
});
await dashboard(['--attach'], 'dark', async (page) => {
  await delay(10_000);
  programs[3].kill('SIGUSR2'); // Breaks RDMA.
  await delay(4000);
  await chooseProgram(page, 'disk', 'unix:');
  await delay(2000);
  await shoot(page, 'dashboard-attached-disk');
});
stop.abort();
await io;
for (const program of programs.reverse()) await end(program);
await finish();
