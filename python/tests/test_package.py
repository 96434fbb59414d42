import weightmill


def test_error_is_a_value_error_with_a_code():
    error = weightmill.Error("stream 3: ends inside a header", "bad_stream")
    assert isinstance(error, ValueError)
    assert error.code == "bad_stream"
