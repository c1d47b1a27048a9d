from threadpoolctl import threadpool_info, threadpool_limits

from ciplearn._core.workers import on_one_thread


def threads():
    """How many threads linear algebra takes."""
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_linear_algebra_takes_one_thread_inside_and_as_many_as_before_outside():
    with threadpool_limits(2, user_api="blas"):
        assert on_one_thread(threads)() == {1}
        assert threads() == {2}


def test_name_and_docstring_stay():
    assert on_one_thread(threads).__name__ == "threads"
    assert on_one_thread(threads).__doc__ == threads.__doc__
