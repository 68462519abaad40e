/* A Predict server on gRPC C++, its asynchronous interface on one thread: y = x / 2 + 2 of the
 * first numbers of x, at most as many as bench_serve_peers.py's models answer. Prints its port.
 *
 *     serve_grpc NUMBERS */
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "predict.grpc.pb.h"

using tensorflow::serving::GetModelMetadataRequest;
using tensorflow::serving::GetModelMetadataResponse;
using tensorflow::serving::PredictionService;
using tensorflow::serving::PredictRequest;
using tensorflow::serving::PredictResponse;
using tensorflow::serving::SignatureDefMap;
using tensorflow::serving::Tensor;
using tensorflow::serving::TensorInfo;

namespace
{

size_t most = 0;

grpc::Status answer(const PredictRequest &request, PredictResponse *response)
{
    const auto x = request.inputs().find("x");
    if (x == request.inputs().end()) {
        return {grpc::StatusCode::INVALID_ARGUMENT, "input x is missing"};
    }
    std::vector<float> in(x->second.float_val().begin(), x->second.float_val().end());
    if (in.empty()) {
        in.resize(x->second.tensor_content().size() / sizeof(float));
        std::memcpy(in.data(), x->second.tensor_content().data(), in.size() * sizeof(float));
    }
    Tensor &y = (*response->mutable_outputs())["y"];
    const size_t count = std::min(in.size(), most);
    y.set_dtype(1);
    y.mutable_tensor_shape()->add_dim()->set_size(static_cast<int64_t>(count));
    for (size_t i = 0; i < count; i++) {
        y.add_float_val(in[i] / 2 + 2);
    }
    response->mutable_model_spec()->set_name(request.model_spec().name());
    response->mutable_model_spec()->mutable_version()->set_value(1);
    return grpc::Status::OK;
}

/* What Sextant's client asks before it sends requests: x and y have a row for each example. */
grpc::Status answer(const GetModelMetadataRequest &request, GetModelMetadataResponse *response)
{
    SignatureDefMap map;
    auto &signature = (*map.mutable_signature_def())["serving_default"];
    for (const bool in : {true, false}) {
        TensorInfo &info =
            in ? (*signature.mutable_inputs())["x"] : (*signature.mutable_outputs())["y"];
        info.set_name(in ? "x:0" : "y:0");
        info.set_dtype(1);
        info.mutable_tensor_shape()->add_dim()->set_size(-1);
        info.mutable_tensor_shape()->add_dim()->set_size(-1);
    }
    signature.set_method_name("tensorflow/serving/predict");
    auto &metadata = (*response->mutable_metadata())["signature_def"];
    metadata.set_type_url("type.googleapis.com/tensorflow.serving.SignatureDefMap");
    metadata.set_value(map.SerializeAsString());
    response->mutable_model_spec()->set_name(request.model_spec().name());
    response->mutable_model_spec()->mutable_version()->set_value(1);
    return grpc::Status::OK;
}

class Tag
{
  public:
    virtual ~Tag() = default;
    virtual void proceed() = 0;
};

/* One call: requested, then answered, then gone. */
template <typename Request, typename Response> class Call : public Tag
{
  public:
    using Method = void (PredictionService::AsyncService::*)(
        grpc::ServerContext *, Request *, grpc::ServerAsyncResponseWriter<Response> *,
        grpc::CompletionQueue *, grpc::ServerCompletionQueue *, void *);

    Call(PredictionService::AsyncService *service, grpc::ServerCompletionQueue *queue,
         Method method)
        : service_(service), queue_(queue), method_(method), answer_(&context_)
    {
        (service_->*method_)(&context_, &request_, &answer_, queue_, queue_, this);
    }

    void proceed() override
    {
        if (answered_) {
            delete this;
            return;
        }
        new Call(service_, queue_, method_);
        Response response;
        const grpc::Status status = answer(request_, &response);
        answered_ = true;
        answer_.Finish(response, status, this);
    }

  private:
    PredictionService::AsyncService *service_;
    grpc::ServerCompletionQueue *queue_;
    Method method_;
    grpc::ServerContext context_;
    Request request_;
    grpc::ServerAsyncResponseWriter<Response> answer_;
    bool answered_ = false;
};

} // namespace

int main(int argc, char **argv)
{
    most = argc > 1 ? static_cast<size_t>(std::atol(argv[1])) : 10;
    PredictionService::AsyncService service;
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service);
    const std::unique_ptr<grpc::ServerCompletionQueue> queue = builder.AddCompletionQueue();
    const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
    if (server == nullptr) {
        return 1;
    }
    std::printf("%d\n", port);
    std::fflush(stdout);
    for (int i = 0; i < 200; i++) {
        new Call<PredictRequest, PredictResponse>(&service, queue.get(),
                                                  &PredictionService::AsyncService::RequestPredict);
    }
    new Call<GetModelMetadataRequest, GetModelMetadataResponse>(
        &service, queue.get(), &PredictionService::AsyncService::RequestGetModelMetadata);
    void *tag = nullptr;
    bool ok = false;
    while (queue->Next(&tag, &ok)) {
        if (ok) {
            static_cast<Tag *>(tag)->proceed();
        }
    }
    return 0;
}
