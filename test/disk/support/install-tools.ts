/** Before the suite: installs the tools where that is possible, so that no test's time limit has to cover it. */

import { execFileSync } from 'node:child_process';
import { missingTools, PACKAGES } from './tools.js';

export default function installTools(): void {
  if (missingTools().length === 0 || process.getuid?.() !== 0) return;
  const apt = (...args: string[]) =>
    execFileSync('apt-get', args, { env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }, stdio: 'ignore' });
  const install = () => apt('install', '-y', '--no-install-recommends', ...PACKAGES, 'fuse3');
  try {
    install();
  } catch {
    try {
      apt('update');
      install();
    } catch (error) {
      console.warn(`the tools cannot be installed: ${(error as Error).message}`);
    }
  }
}
