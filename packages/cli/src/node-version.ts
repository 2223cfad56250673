/** The Node.js version that this program needs; package.json tells npm the same. */

const NEEDED = [20, 19] as const;

/** The error message for this Node.js version (`20.18.1`); undefined if it is new enough. */
export function complaintAboutNode(version: string): string | undefined {
  const [major, minor] = version.split('.').map(Number);
  if (major > NEEDED[0] || (major === NEEDED[0] && minor >= NEEDED[1])) return undefined;
  return `rocev2 needs Node.js ${NEEDED.join('.')} or newer; this is ${version} (https://nodejs.org)`;
}
