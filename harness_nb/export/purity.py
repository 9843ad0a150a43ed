"""What well-known functions and methods do to their arguments: tables, read by ``reader``. Pure data.

What is not listed is taken to change the objects that it gets, so that a cell is rather kept than lost. Collected from
the public references of Python, NumPy, pandas, scikit-learn, PyTorch and matplotlib.
"""

from __future__ import annotations

import builtins


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


NAMESPACE = frozenset(dir(builtins)) | {"display", "get_ipython", "__name__", "__doc__", "__builtins__", "In", "exit"}
"""Names that every IPython kernel has."""

HARNESS_NAMES = frozenset(
    {"read_file", "list_files", "search_files", "search_replace", "write_file", "view_image", "workspace"}
)
"""Names that only harness_nb puts into the namespace."""

CHANGING_BUILTINS = frozenset({"next", "setattr", "delattr", "__import__", "exec", "eval"})
OPAQUE_BUILTINS = frozenset({"exec", "eval", "globals", "locals", "vars"})
CODE_BUILTINS = frozenset({"exec", "eval"})
"""They run a text as code: it is read where it stands there, and may change anything where it does not."""

PURE_MODULES = _words(
    """
    builtins collections copy csv datetime functools glob hashlib html itertools json math operator os pathlib
    pprint re shutil statistics string textwrap time typing dataclasses IPython numpy pandas scipy sklearn
    matplotlib seaborn plotly PIL tqdm torch torchvision polars sympy pickle joblib urllib requests
    """
)
"""Functions of these modules leave their arguments alone, but for those in ``CHANGING_FUNCTIONS``."""

FRESH_MODULES = PURE_MODULES | _words(
    """
    altair astropy bokeh bs4 catboost cv2 dask datasets duckdb gc geopandas gymnasium h5py httpx imageio imblearn jax
    keras lightgbm lxml networkx nltk numba openpyxl optuna os pyarrow random shap shutil skimage spacy sqlite3
    statsmodels struct subprocess sys tempfile tensorflow tokenizers traceback transformers xarray xgboost yaml zipfile
    """
)
"""What functions of these modules return is new, and calling one leaves no state behind in its module."""

CHANGING_FUNCTIONS = _words(
    """
    at shuffle fill_diagonal copyto put put_along_axis place putmask heappush heappop heapify heapreplace insort
    insort_left insort_right setitem delitem iadd seek backward update_wrapper train fit
    """
)

VIEW_METHODS = _words(
    """
    reshape ravel view transpose squeeze swapaxes to_numpy get items values keys parameters named_parameters head
    tail groupby flatten unsqueeze expand permute detach numpy modules children state_dict iterrows itertuples
    buffers rename set_axis filter get_group
    """
)
"""They change nothing, and what they return may share its data with the object."""

PURE_METHODS = VIEW_METHODS | _words(
    """
    abs agg aggregate all any apply argmax argmin argsort as_posix assign astype capitalize ceil clip copy corr
    count cov cumsum cumprod decode describe diff dot dropna dtype duplicated encode endswith eq exists exp
    expanduser explode fillna find floor format from_predictions from_estimator get_params get_text glob hexdigest
    hist idxmax idxmin index info is_dir is_file isin isna isnull isalpha isdigit issubset intersection item iterdir
    join joinpath kneighbors log lower lstrip map max mean median melt merge min mkdir mode name nlargest notna
    notnull nsmallest nunique open pct_change pivot pivot_table plot predict predict_log_proba predict_proba
    decision_function prod quantile query rank read_bytes read_text relative_to repeat replace reset_index resample
    resolve rglob rolling round rsplit rstrip sample savefig score select_dtypes set_index shape shift size skew
    sort_index sort_values split splitlines stack startswith stat std strftime strip sum symmetric_difference title
    to_csv to_dict to_excel to_frame to_html to_json to_list to_markdown to_parquet to_pickle to_string tobytes
    tolist transform trace union unique unstack upper value_counts var where with_name with_suffix write_bytes
    write_text zfill difference cpu bincount isoformat total_seconds most_common bit_length numel nonzero softmax
    sigmoid tanh float long int half double bool type
    """
)

ARGUMENT_SAFE_METHODS = _words(
    """
    append add extend insert update setdefault discard remove fit fit_transform partial_fit imshow plot scatter bar
    barh hist boxplot fill_between errorbar pie contour contourf set set_title set_xlabel set_ylabel set_xticks
    set_yticks set_xlim set_ylim legend axis axvline axhline text annotate bar_label margins tick_params suptitle
    colorbar grid pcolormesh matshow write writelines writerow writerows subplots set_index load_state_dict
    update_layout to
    """
)
"""They change the object, not what they are given (the object may hold on to it)."""

CHANGING_METHODS = _words(
    """
    add append appendleft clear discard extend insert pop popitem popleft put register remove setdefault update write
    writelines
    """
)
"""Methods that change the object whatever it is; as a value they are there to be called."""

CALLING = _words(
    """
    agg aggregate apply apply_along_axis applymap dropwhile filter filterfalse fromfunction map partial pipe reduce
    starmap sub subn submit takewhile timeit transform vectorize
    """
)
"""Functions and methods that call what they are given; so do the keywords below."""

CALLED_KEYWORDS = _words("callback default default_factory func function hook key object_hook on_end target")

IN_PLACE_KEYWORDS = {"inplace": True, "copy": False, "overwrite_a": True, "overwrite_input": True}
"""Keywords of functions and methods, and the value with which they change what they work on."""

WRITTEN_KEYWORDS = _words("out ax file buf")

IMMUTABLE_ATTRIBUTES = _words("shape size ndim dtype dtypes __name__ __doc__")
"""Parts of an object that cannot be changed and share nothing with it."""

IMMUTABLE_TYPES = _words(
    """
    int float complex bool str bytes NoneType module tuple frozenset
    int64 int32 float64 float32 bool_ str_ PosixPath WindowsPath Path Timestamp Timedelta date datetime timedelta
    range
    """
)
"""Type names, as a manifest of the namespace gives them, of values that nothing can change."""

HOLDING_TYPES = frozenset({"tuple", "frozenset"})
"""Those of them that can hold what can be changed."""

DEFINED_TYPES = frozenset({"", "function", "class", "type", "ABCMeta"})
"""Type names of what a definition makes; its body runs where it is called, not where it is used."""

CONTAINER_TYPES = _words("list dict set tuple frozenset deque OrderedDict defaultdict Counter ChainMap")
"""Type names of values that hold other values; what an operator makes of two of them shares their items."""

DATA_TYPES = CONTAINER_TYPES | _words("ndarray DataFrame Series Index Tensor Figure Axes")
"""Type names of values whose use draws no random numbers."""

CONSUMED_TYPES = _words(
    """
    tqdm tqdm_notebook BufferedRandom _TemporaryFileWrapper TextFileReader Cursor Queue SimpleQueue LifoQueue
    PriorityQueue coroutine async_generator _tee accumulate batched combinations compress dropwhile filterfalse groupby
    pairwise permutations product repeat starmap takewhile zip_longest
        generator map filter zip enumerate reversed count cycle chain islice defaultdict reader DictReader TextIOWrapper
    BufferedReader StringIO BytesIO
    """
)
"""Type names of values that every use may change; so are all that end in ``iterator``."""

AMBIENT_CALLS = _words(
    """
    warnings.filterwarnings warnings.simplefilter os.chdir os.putenv os.umask sys.path.append sys.path.insert
    sys.path.extend sys.setrecursionlimit locale.setlocale logging.basicConfig pandas.set_option
    numpy.set_printoptions numpy.seterr matplotlib.use matplotlib.rc matplotlib.style.use matplotlib.pyplot.rc
    matplotlib.pyplot.style.use matplotlib.rcParams.update matplotlib.pyplot.rcParams.update
    matplotlib.pyplot.switch_backend os.environ.update os.environ.setdefault os.environ.pop
    multiprocessing.set_start_method IPython.display.set_matplotlib_formats
    matplotlib_inline.backend_inline.set_matplotlib_formats sklearn.set_config polars.Config
    """
)
"""Settings that later cells depend on without naming them; so is every store into a part of a module."""

AMBIENT_WORDS = ("set_", "enable_", "disable_", "use_deterministic", "register", "unregister", "reset_", "setcontext")
"""A call of a module's function that begins so is a setting too."""

AMBIENT_FUNCTIONS = _words("set reset enable disable rcdefaults captureWarnings install uninstall")
"""So is one that is called so."""

AMBIENT_METHODS = _words("__enter__ __exit__ enter_context install uninstall activate deactivate")
"""Methods whose effects outlast the call and are seen by no name."""

SEEDING = {
    "random.seed": "random",
    "numpy.random.seed": "numpy.random",
    "numpy.random.set_state": "numpy.random",
    "torch.manual_seed": "torch",
    "torch.random.manual_seed": "torch",
    "tensorflow.random.set_seed": "tensorflow",
    "tensorflow.keras.utils.set_random_seed": "tensorflow",
    "keras.utils.set_random_seed": "tensorflow",
}
"""Calls that set the state of a global generator, and which one."""

OWN_GENERATORS = _words(
    """
    numpy.random.default_rng numpy.random.RandomState numpy.random.Generator numpy.random.SeedSequence
    numpy.random.PCG64 random.Random torch.Generator
    """
)
"""Generators that live in a name; unseeded where they are called without an argument."""

TORCH_WITHOUT_CHANCE = _words(
    """
    load save tensor from_numpy as_tensor zeros ones zeros_like ones_like full empty no_grad inference_mode device
    cuda stack cat arange linspace float32 float64 int64 long Tensor backends get_num_threads set_num_threads where
    mean sum argmax softmax max min eye set_grad_enabled is_tensor equal allclose jit onnx version __version__
    """
)

NUMPY_USERS = ("scipy.stats", "sklearn.")
"""Modules whose functions draw from NumPy's global generator where no ``random_state`` is given."""

SKLEARN_CHANCE = _words(
    """
    train_test_split shuffle resample KFold StratifiedKFold ShuffleSplit StratifiedShuffleSplit
    RandomForestClassifier RandomForestRegressor ExtraTreesClassifier GradientBoostingClassifier MLPClassifier
    MLPRegressor SGDClassifier KMeans MiniBatchKMeans make_classification make_regression make_blobs make_moons
    make_circles TSNE IsolationForest RandomizedSearchCV GaussianMixture
    """
)
"""What of scikit-learn draws at random (``KFold`` and its like only with ``shuffle=True``)."""

WRITING_CALLS = _words(
    """
    to_csv to_json to_excel to_parquet to_pickle to_html to_feather savefig save savez savez_compressed savetxt
    write_text write_bytes dump imsave imwrite write_image write_html export urlretrieve save_pretrained save_model
    unlink mkdir makedirs rmtree tofile to_file to_hdf write touch
    """
)
EFFECT_CALLS = _words(
    """
    extractall extract unpack_archive copy2 copyfile copytree move urlretrieve run check_call check_output Popen system
    snapshot_download hf_hub_download rename makedirs mkdir rmtree unlink remove symlink_to commit executescript
    """
)
"""Calls that change files whose names nobody says; they count where a session has no record of its files."""

READING_CALLS = _words(
    """
    read_text read_bytes read_csv read_json read_excel read_parquet read_pickle read_table read_feather load loadtxt
    genfromtxt imread listdir walk scandir glob iglob rglob iterdir exists is_file stat read fromfile open_dataset
    import_module run_path from_pretrained load_model reload
    """
)

LOOKING = _words(
    """
    print head tail describe info sample value_counts shape dtype dtypes columns index isna isnull sum len type dir
    help nunique unique display memory_usage min max mean sorted keys items list size ndim repr str any all tolist
    round set __version__ count files format version
    """
)
"""Calls and attributes of a cell that only looks."""

DISTRIBUTIONS = {
    "sklearn": "scikit-learn",
    "PIL": "pillow",
    "cv2": "opencv-python",
    "yaml": "PyYAML",
    "bs4": "beautifulsoup4",
    "skimage": "scikit-image",
    "dateutil": "python-dateutil",
    "dotenv": "python-dotenv",
    "mpl_toolkits": "matplotlib",
    "umap": "umap-learn",
    "IPython": "ipython",
    "pkg_resources": "setuptools",
    "google.protobuf": "protobuf",
    "attr": "attrs",
    "fitz": "PyMuPDF",
    "docx": "python-docx",
    "Bio": "biopython",
    "igraph": "python-igraph",
    "OpenSSL": "pyOpenSSL",
}
"""Distribution of a top-level module where the names differ."""
