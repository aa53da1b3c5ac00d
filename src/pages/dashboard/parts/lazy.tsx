import type { ComponentType } from 'preact';
import { SkilltraceError } from '../../../client/errors.js';
import { useLoad } from '../base/load.js';
import { Loaded } from './loaded.jsx';

/** Loads the script of a component when it is first shown. */
export const lazy = <Module, Props extends object>(
  load: () => Promise<Module>,
  select: (module: Module) => ComponentType<Props>,
) =>
  function Lazy(props: Props) {
    const script = useLoad(() => load().catch(rejectMissing), []);
    return (
      <Loaded load={script} subject="the page">
        {(module) => {
          const Content = select(module);
          return <Content {...props} />;
        }}
      </Loaded>
    );
  };

/** After an upgrade of the service, the files of the previous version are missing. */
function rejectMissing(cause: unknown): never {
  throw new SkilltraceError('NETWORK_ERROR', 'A script is missing. Reload the page', { cause });
}
