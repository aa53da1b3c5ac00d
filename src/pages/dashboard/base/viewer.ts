import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { OwnKey } from '../../../client/types.js';
import type { Api } from './session.js';

export interface Viewer {
  readonly api: Api;
  readonly ownKey: OwnKey;
  /** After a change of the time zone. */
  readonly reloadKey: () => void;
  hasScope(scope: OwnKey['scopes'][number]): boolean;
}

export const ViewerContext = createContext<Viewer | null>(null);

export function useViewer(): Viewer {
  const viewer = useContext(ViewerContext);
  if (viewer === null) throw new Error('ViewerContext has no value');
  return viewer;
}
