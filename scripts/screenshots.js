// Makes the pictures of README.md, and those of packages/dashboard/docs/dashboard.md of the lab and of a simulation: npm run build && node scripts/screenshots.js
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { dashboard, finish, shoot } from './dashboard-pages.js';

/** Runs a dashboard, lets `act` play with its page, and takes the picture. */
function picture(name, args, act) {
  return dashboard(args, 'light', async (page) => {
    await act(page);
    await shoot(page, name);
  });
}

const choose = (page, name) => page.locator('label.choice', { hasText: new RegExp(`^${name}$`) }).click();

await picture('dashboard-livelock', [], async (page) => {
  await delay(8000);
  await shoot(page, 'dashboard-first-screen', { fullPage: false });
  await choose(page, 'go-back-n');
  await delay(8000);
});
await picture('dashboard-dcqcn', ['-q', '4'], async (page) => {
  for (const name of ['nothing', 'go-back-n', '200 Mb/s, ECN']) await choose(page, name);
  await delay(8000);
  await choose(page, 'dcqcn');
  await delay(15_000);
});
const capture = fileURLToPath(new URL('../test/golden/loss-req-send-rc-v4.pcapng', import.meta.url));
await picture('dashboard-capture', ['--capture', capture], async (page) => {
  for (let i = 0; i < 3; i++) await page.keyboard.press('n');
});
await picture('dashboard-recording', ['--sim', 'dcqcn-n10-85us'], async (page) => {
  for (let i = 0; i < 300; i++) await page.keyboard.press('ArrowRight');
});
await finish();
