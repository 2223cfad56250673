/**
 * A checker of linearizability for one register: is there an order of the operations, each between its call and its return, in which every result is right?
 * The search of Wing and Gong with the memory of Lowe: states that were reached before are not searched again.
 */

/** One operation on one key. Values are unique texts; undefined is no entry. */
export interface Operation {
  readonly client: string;
  /** Order of calls and returns in the whole history; a call without a return has happened at any time after, or never. */
  readonly calledAt: number;
  readonly returnedAt: number | undefined;
  readonly action:
    | { readonly kind: 'get'; readonly value: string | undefined }
    | { readonly kind: 'set'; readonly value: string }
    /** The owner has died, and a new one begins with what its snapshot has. */
    | { readonly kind: 'restart'; readonly value?: string | undefined }
    | { readonly kind: 'delete'; readonly existed: boolean | undefined }
    | {
        readonly kind: 'compareAndSet';
        readonly expected: string | undefined;
        readonly value: string;
        readonly isDone: boolean | undefined;
      };
}

type State = string | undefined;

/** The state after an action, or `impossible` if its result does not fit the state before. */
function after(state: State, action: Operation['action']): State | typeof IMPOSSIBLE {
  if (action.kind === 'get') return action.value === state ? state : IMPOSSIBLE;
  if (action.kind === 'set') return action.value;
  if (action.kind === 'restart') return action.value;
  if (action.kind === 'delete')
    return action.existed === undefined || action.existed === (state !== undefined) ? undefined : IMPOSSIBLE;
  const fits = action.expected === state;
  if (action.isDone !== undefined && action.isDone !== fits) return IMPOSSIBLE;
  return fits ? action.value : state;
}

const IMPOSSIBLE = Symbol('impossible');

/** Whether the history of one key, which is empty at first, is linearizable. */
export function isLinearizable(history: readonly Operation[]): boolean {
  // A GET that has not returned says nothing.
  const operations = history.filter(({ action, returnedAt }) => returnedAt !== undefined || action.kind !== 'get');
  const seen = new Set<string>();
  const search = (left: readonly Operation[], state: State): boolean => {
    const mustReturn = left.filter(({ returnedAt }) => returnedAt !== undefined);
    if (mustReturn.length === 0) return true;
    const mark = `${state}|${left.map((operation) => operations.indexOf(operation)).join()}`;
    if (seen.has(mark)) return false;
    seen.add(mark);
    const firstReturn = Math.min(...mustReturn.map(({ returnedAt }) => returnedAt!));
    for (const operation of left) {
      if (operation.calledAt > firstReturn) continue;
      const next = after(state, operation.action);
      if (
        next !== IMPOSSIBLE &&
        search(
          left.filter((other) => other !== operation),
          next,
        )
      )
        return true;
    }
    return false;
  };
  return search(operations, undefined);
}
