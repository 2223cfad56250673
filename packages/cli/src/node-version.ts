/** package.json declares the same minimum version to npm. */

const NEEDED = [20, 19] as const;

export function complaintAboutNode(version: string): string | undefined {
  const [major, minor] = version.split('.').map(Number);
  if (major > NEEDED[0] || (major === NEEDED[0] && minor >= NEEDED[1])) return undefined;
  return `rocev2 needs Node.js ${NEEDED.join('.')} or newer; this is ${version} (https://nodejs.org)`;
}
